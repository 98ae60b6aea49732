//! How much of a body is kept and reported.

use crate::field::cut;

/// Strict decoding errors and warnings of one body. A real server reports as many.
pub(super) const MAX_PROBLEMS: usize = 100;

/// Paths that are remembered of one body, more than are reported: they are put into another order first.
pub(super) const MAX_PATHS: usize = 10_000;

/// The longest path that is reported, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// The most memory the values of one body may take, in bytes as estimated by [`Weight`].
const MAX_WEIGHT: usize = 128 * 1024 * 1024;

/// An estimate of the memory that values take.
#[derive(Debug, Default)]
pub(super) struct Weight(usize);

impl Weight {
    /// An item of a list, or a member beside its name.
    pub(super) const ITEM: usize = size_of::<serde_json::Value>();

    /// An object: the first node of its tree. An empty object has none until defaults are filled in, which may make one
    /// of each object of a list.
    pub(super) const OBJECT: usize = 640;

    /// Returns the memory of a string.
    pub(super) fn of_text(text: &str) -> usize {
        text.len() + 16
    }

    /// Adds the memory of a value.
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }

    /// Returns whether the memory is more than a body may take.
    pub(super) fn is_exceeded(&self) -> bool {
        self.0 > MAX_WEIGHT
    }
}

/// Returns the path of the member `name` of the object at `parent`, cut if it is long.
pub(super) fn path_text(parent: &str, name: &str) -> String {
    if parent.len() > MAX_PATH_BYTES {
        return cut(parent[..parent.floor_char_boundary(MAX_PATH_BYTES + 4)].to_owned(), MAX_PATH_BYTES);
    }
    let name = &name[..name.floor_char_boundary(MAX_PATH_BYTES + 4)];
    let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    cut(path, MAX_PATH_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_cut_between_characters() {
        let long = "ä".repeat(MAX_PATH_BYTES);
        for path in [path_text(&long, "x"), path_text("a", &long), path_text("", &long)] {
            assert!(path.len() <= MAX_PATH_BYTES + 4 && path.ends_with("..."), "{}", path.len());
        }
    }
}
