//! Files the program writes.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use crate::exit::Failure;

/// Writes a file that only its owner can read: a kubeconfig has a token in it.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let written = open_private(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| Failure::File { path: path.to_owned(), source })
}

#[cfg(unix)]
fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}
