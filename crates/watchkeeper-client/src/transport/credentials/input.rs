//! Configuration values that are given inline or by path.

use std::{
    fmt,
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use secrecy::{ExposeSecret, SecretSlice};

use super::CredentialError;

/// The maximum size of a file, more than any certificate bundle, key or token needs.
const FILE_BYTES: u64 = 1 << 20;

/// The origin of a certificate, key or token.
#[derive(Clone)]
pub(crate) enum InlineOrFile {
    /// Bytes from the configuration itself, with a label that names their place in it.
    Inline { label: String, bytes: Arc<SecretSlice<u8>> },
    /// A file that is read on each load.
    File(PathBuf),
}

impl InlineOrFile {
    pub(crate) fn inline(label: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::Inline { label: label.into(), bytes: Arc::new(SecretSlice::from(bytes)) }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(path.into())
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Returns the current bytes.
    pub(crate) fn read(&self) -> Result<SecretSlice<u8>, CredentialError> {
        match self {
            Self::Inline { bytes, .. } => Ok(SecretSlice::from(bytes.expose_secret().to_vec())),
            Self::File(path) => read_file(path),
        }
    }
}

impl fmt::Display for InlineOrFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline { label, .. } => f.write_str(label),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

impl fmt::Debug for InlineOrFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn read_file(path: &Path) -> Result<SecretSlice<u8>, CredentialError> {
    let failed = |kind: ErrorKind| CredentialError::Unreadable { path: path.to_owned(), kind };
    let file = File::open(path).map_err(|error| failed(error.kind()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(error.kind()))?;
    let bytes = SecretSlice::from(bytes);
    if bytes.expose_secret().len() as u64 > FILE_BYTES {
        return Err(CredentialError::TooLarge { path: path.to_owned(), limit_bytes: FILE_BYTES });
    }
    Ok(bytes)
}
