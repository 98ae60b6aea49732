//! Limits on the memory and the reported errors of a body.

use crate::field::cut;

/// The maximum number of strict decoding errors and warnings of one body, as upstream.
pub(super) const MAX_PROBLEMS: usize = 100;

/// The maximum number of paths kept for one body. It exceeds the number of reported paths, because paths are sorted before
/// the list is truncated.
pub(super) const MAX_PATHS: usize = 10_000;

/// The longest path that is reported, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// The maximum memory of the values of one body, in bytes as estimated by [`MemoryEstimate`].
const MAX_WEIGHT: usize = 128 * 1024 * 1024;

/// An estimate of the memory of values.
#[derive(Debug, Default)]
pub(super) struct MemoryEstimate(usize);

impl MemoryEstimate {
    /// The memory of a list item, or of a member without its name.
    pub(super) const ITEM: usize = size_of::<serde_json::Value>();

    /// The memory of an object: the first node of its tree. An empty object has none until defaults are added, which may
    /// happen to each object of a list.
    pub(super) const OBJECT: usize = 640;

    /// Returns the memory of a string.
    pub(super) fn of_text(text: &str) -> usize {
        text.len() + 16
    }

    /// Adds the memory of a value.
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }

    /// Returns whether the memory exceeds the limit.
    pub(super) fn is_exceeded(&self) -> bool {
        self.0 > MAX_WEIGHT
    }
}

/// Returns the path of the member `name` of the object at `parent`, truncated if it is long.
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
    fn long_paths_are_truncated_at_a_character_boundary() {
        let long = "ä".repeat(MAX_PATH_BYTES);
        for path in [path_text(&long, "x"), path_text("a", &long), path_text("", &long)] {
            assert!(path.len() <= MAX_PATH_BYTES + 4 && path.ends_with("..."), "{}", path.len());
        }
    }
}
