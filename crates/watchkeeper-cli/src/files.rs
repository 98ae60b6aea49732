//! Files that the program writes.

use std::{io::Write as _, path::Path};

use crate::exit::Failure;

/// Writes a file that only its owner can read, because a kubeconfig may contain a token.
///
/// The text is written to a temporary file beside `path`, which then replaces it. The content and mode of an
/// existing file are replaced, and a reader sees either the old text or the new one. A symbolic link is
/// followed: its target is replaced. A pipe or a device is written directly.
///
/// # Errors
/// Returns [`Failure::File`] if the directory cannot be written to.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| Failure::File { path: path.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
        return std::fs::write(path, text).map_err(failed);
    }
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    // The temporary file is created with mode 0600, and renaming preserves it.
    let written =
        tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.persist(&target).map_err(|error| error.error)
        });
    written.map(|_| ()).map_err(failed)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_private_file_is_0600_also_where_a_readable_one_exists() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, "old and much longer than the new one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, "new").unwrap();
        assert_eq!((mode(&path), std::fs::read_to_string(&path).unwrap().as_str()), (0o600, "new"));
        let fresh = folder.path().join("fresh");
        write_private(&fresh, "new").unwrap();
        assert_eq!(mode(&fresh), 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_link_stays_a_link_to_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_private(&link, "new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((mode(&target), std::fs::read_to_string(&target).unwrap().as_str()), (0o600, "new"));
    }
}
