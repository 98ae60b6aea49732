//! The source tree that a new crate depends on.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::exit::Failure;

/// The source tree of Watchkeeper that a new crate depends on.
///
/// The crates are not published, so a version alone could not be resolved: a new crate always depends on them by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceTree(PathBuf);

/// The places that may lead to the source tree of this program.
#[derive(Debug)]
pub(super) struct Origin {
    /// The folder of this crate when the program was compiled.
    manifest: PathBuf,
    /// The program itself. A tree that was moved after it was built is found here, if it contains the target folder.
    program: Option<PathBuf>,
}

impl Origin {
    pub(super) fn of_this_program() -> Self {
        Self {
            manifest: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
            program: env::current_exe().and_then(|path| path.canonicalize()).ok(),
        }
    }
}

impl SourceTree {
    /// Returns the tree that is named, or else the one that the program was built from.
    ///
    /// # Errors
    /// Returns an error if the named folder is no source tree, or if none is named and the one of the program no longer exists.
    pub(super) fn find(named: Option<&Path>, origin: &Origin) -> Result<Self, Failure> {
        if let Some(path) = named {
            let tree =
                path.canonicalize().map_err(|source| Failure::File { path: path.to_owned(), source })?;
            if !is_tree(&tree) {
                let message = format!(
                    "{} is no source tree of Watchkeeper: it has no crates/watchkeeper",
                    path.display()
                );
                return Err(Failure::Other(message));
            }
            return Ok(Self(tree));
        }
        let compiled_from = origin.manifest.ancestors().skip(1);
        let around_program = origin.program.iter().flat_map(|program| program.ancestors().skip(1));
        let mut candidates = compiled_from.chain(around_program);
        candidates.find(|folder| is_tree(folder)).map(|tree| Self(tree.to_owned())).ok_or_else(|| {
            Failure::Other(format!(
                "the source tree this program was built from is gone (its crate was in {}), and the crates of Watchkeeper are \
                 not published; name a source tree with --watchkeeper FOLDER",
                origin.manifest.display()
            ))
        })
    }

    /// Returns the line of the dependency in a manifest.
    pub(super) fn dependency(&self, features: &[&str]) -> String {
        let features: Vec<String> = features.iter().map(|feature| format!("{feature:?}")).collect();
        let path = self.0.join("crates").join("watchkeeper");
        let path = toml_string(&path.to_string_lossy());
        format!("watchkeeper = {{ path = {path}, features = [{}] }}", features.join(", "))
    }

    /// Returns the lock file of the tree, if it has one.
    pub(super) fn lock_file(&self) -> Option<PathBuf> {
        Some(self.0.join("Cargo.lock")).filter(|lock| lock.is_file())
    }
}

fn is_tree(folder: &Path) -> bool {
    folder.join("crates/watchkeeper/Cargo.toml").is_file() && folder.join("Cargo.toml").is_file()
}

/// Returns a text as a TOML string.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder that looks like a source tree.
    fn tree(folder: &Path) -> PathBuf {
        let crate_folder = folder.join("crates/watchkeeper");
        fs::create_dir_all(&crate_folder).unwrap();
        fs::write(crate_folder.join("Cargo.toml"), "").unwrap();
        fs::write(folder.join("Cargo.toml"), "").unwrap();
        folder.to_owned()
    }

    fn origin(manifest: &Path, program: &Path) -> Origin {
        Origin { manifest: manifest.to_owned(), program: Some(program.to_owned()) }
    }

    #[test]
    fn a_folder_that_is_no_tree_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let own = Origin::of_this_program();
        let failure = SourceTree::find(Some(folder.path()), &own).unwrap_err();
        assert!(failure.to_string().ends_with("it has no crates/watchkeeper"), "{failure}");
        assert!(SourceTree::find(Some(&folder.path().join("nowhere")), &own).is_err());
    }

    #[test]
    fn the_tree_is_the_one_the_program_was_compiled_from_wherever_the_program_is() {
        let folder = tempfile::tempdir().unwrap();
        let own = tree(&folder.path().join("own"));
        let other = tree(&folder.path().join("other"));
        let manifest = own.join("crates/watchkeeper-cli");
        for program in [own.join("target/debug/w"), other.join("target/debug/w"), folder.path().join("bin/w")]
        {
            let found = SourceTree::find(None, &origin(&manifest, &program)).unwrap();
            assert_eq!(found, SourceTree(own.clone()), "{}", program.display());
        }
    }

    #[test]
    fn a_tree_that_was_moved_is_found_around_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let moved = tree(&folder.path().join("moved"));
        let manifest = folder.path().join("old/crates/watchkeeper-cli");
        let found = SourceTree::find(None, &origin(&manifest, &moved.join("target/debug/w"))).unwrap();
        assert_eq!(found, SourceTree(moved));
    }

    #[test]
    fn without_a_tree_there_is_no_dependency_and_the_error_names_the_flag() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("old/crates/watchkeeper-cli");
        let failure = SourceTree::find(None, &origin(&manifest, &folder.path().join("bin/w"))).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("not published") && text.contains("--watchkeeper FOLDER"), "{text}");
        assert!(text.contains(&*manifest.to_string_lossy()), "{text}");
    }

    #[test]
    fn paths_are_quoted_for_toml() {
        let tree = SourceTree(PathBuf::from("/a \"b\"\\c"));
        assert_eq!(
            tree.dependency(&["latest"]),
            r#"watchkeeper = { path = "/a \"b\"\\c/crates/watchkeeper", features = ["latest"] }"#
        );
    }
}
