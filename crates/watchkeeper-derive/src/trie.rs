//! The tree of all paths of a type: paths with a common start share the nodes of that start.

use crate::path::Step;

/// A value in the document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Node {
    /// A value of which nothing is read. Only a root without paths is one.
    #[default]
    Empty,
    /// A value that is stored, by its number.
    Leaf(usize),
    /// An object or a map, of which these members are read.
    Object(Vec<(String, Node)>),
    /// A list, of which every item is read.
    List(Box<Node>),
}

/// The reason that a path cannot be added: its relation to the path of the contained leaf.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// The paths are equal.
    Same(usize),
    /// The leaf contains the new path.
    Inside(usize),
    /// The new path contains the leaf.
    Around(usize),
    /// The paths disagree: one reads the members of an object where the other reads the items of a list.
    Shape(usize),
}

impl Node {
    /// Adds a leaf at the end of a path.
    pub(crate) fn insert(&mut self, steps: &[Step], leaf: usize) -> Result<(), Conflict> {
        if let Self::Empty = self {
            *self = match steps.first() {
                None => Self::Leaf(leaf),
                Some(Step::Member(_)) => Self::Object(Vec::new()),
                Some(Step::Items) => Self::List(Box::default()),
            };
            if steps.is_empty() {
                return Ok(());
            }
        }
        let first = self.leaves().next().unwrap_or(leaf);
        match (self, steps) {
            (Self::Leaf(other), []) => Err(Conflict::Same(*other)),
            (Self::Leaf(other), _) => Err(Conflict::Inside(*other)),
            (_, []) => Err(Conflict::Around(first)),
            (Self::Object(members), [Step::Member(name), rest @ ..]) => {
                let at = members.iter().position(|(other, _)| other == name).unwrap_or_else(|| {
                    members.push((name.clone(), Self::Empty));
                    members.len() - 1
                });
                members[at].1.insert(rest, leaf)
            }
            (Self::List(item), [Step::Items, rest @ ..]) => item.insert(rest, leaf),
            _ => Err(Conflict::Shape(first)),
        }
    }

    /// Returns the leaves at and below this node.
    pub(crate) fn leaves(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Self::Empty => Box::new(std::iter::empty()),
            Self::Leaf(leaf) => Box::new(std::iter::once(*leaf)),
            Self::Object(members) => Box::new(members.iter().flat_map(|(_, node)| node.leaves())),
            Self::List(item) => item.leaves(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::parse;

    fn trie(paths: &[&str]) -> Result<Node, Conflict> {
        let mut root = Node::Empty;
        for (leaf, path) in paths.iter().enumerate() {
            root.insert(&parse(path).unwrap(), leaf)?;
        }
        Ok(root)
    }

    #[test]
    fn paths_with_a_common_start_share_its_nodes() {
        let leaf = |name: &str, leaf| (name.to_owned(), Node::Leaf(leaf));
        let item = Node::Object(vec![leaf("name", 1), leaf("image", 3)]);
        let spec =
            Node::Object(vec![leaf("nodeName", 0), ("containers".to_owned(), Node::List(Box::new(item)))]);
        assert_eq!(
            trie(&["spec.nodeName", "spec.containers[].name", "status", "spec.containers[].image"]),
            Ok(Node::Object(vec![("spec".to_owned(), spec), leaf("status", 2)]))
        );
    }

    #[test]
    fn paths_that_overlap_or_disagree_are_rejected() {
        for (paths, conflict) in [
            (["a.b", "a.b"], Conflict::Same(0)),
            (["a.b", "a['b']"], Conflict::Same(0)),
            (["a[].b", "a[].b"], Conflict::Same(0)),
            (["a", "a.b"], Conflict::Inside(0)),
            (["a", "a[].b"], Conflict::Inside(0)),
            (["a.b.c", "a"], Conflict::Around(0)),
            (["a[].b", "a"], Conflict::Around(0)),
            (["a[].b", "a.b"], Conflict::Shape(0)),
            (["a.b", "a[]"], Conflict::Shape(0)),
        ] {
            assert_eq!(trie(&paths), Err(conflict), "{paths:?}");
        }
    }
}
