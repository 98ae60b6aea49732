//! Where the crates of Watchkeeper come from.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::exit::Failure;

/// What a new crate depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A working tree.
    Tree(PathBuf),
    /// The registry, in the version of this program.
    Registry,
}

impl Source {
    /// The tree that is named; else the one this program was built from, if it is still there; else the registry.
    pub(super) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = named {
            let tree =
                path.canonicalize().map_err(|source| Failure::File { path: path.to_owned(), source })?;
            if !is_tree(&tree) {
                let message = format!(
                    "{} is no working tree of Watchkeeper: it has no crates/watchkeeper",
                    path.display()
                );
                return Err(Failure::Other(message));
            }
            return Ok(Self::Tree(tree));
        }
        // target/debug/watchkeeper, or wherever else in a tree it was built.
        let program = env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
        let tree = program.ancestors().skip(1).find(|folder| is_tree(folder));
        Ok(tree.map_or(Self::Registry, |tree| Self::Tree(tree.to_owned())))
    }

    /// The dependency, as a manifest has it.
    pub(super) fn dependency(&self, features: &[&str]) -> String {
        let features: Vec<String> = features.iter().map(|feature| format!("{feature:?}")).collect();
        let from = match self {
            Self::Tree(tree) => {
                let path = tree.join("crates").join("watchkeeper");
                format!("path = {}", toml_string(&path.to_string_lossy()))
            }
            Self::Registry => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
        };
        format!("watchkeeper = {{ {from}, features = [{}] }}", features.join(", "))
    }

    pub(super) fn lock_file(&self) -> Option<PathBuf> {
        match self {
            Self::Tree(tree) => Some(tree.join("Cargo.lock")).filter(|lock| lock.is_file()),
            Self::Registry => None,
        }
    }
}

fn is_tree(folder: &Path) -> bool {
    folder.join("crates/watchkeeper/Cargo.toml").is_file() && folder.join("Cargo.toml").is_file()
}

/// A string as TOML has it.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_tree_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let failure = Source::find(Some(folder.path())).unwrap_err();
        assert!(failure.to_string().ends_with("it has no crates/watchkeeper"), "{failure}");
        assert!(Source::find(Some(&folder.path().join("nowhere"))).is_err());
    }

    #[test]
    fn paths_are_quoted_for_toml() {
        let source = Source::Tree(PathBuf::from("/a \"b\"\\c"));
        assert_eq!(
            source.dependency(&["latest"]),
            r#"watchkeeper = { path = "/a \"b\"\\c/crates/watchkeeper", features = ["latest"] }"#
        );
    }
}
