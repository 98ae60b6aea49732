//! Sets of paths into an object.

use std::fmt;

use super::path::PathElement;
use crate::schema::{Shape, TypeRef};

/// A set of paths into an object: the fields of a manager, or the changed fields.
///
/// A member path implies nothing about the paths above and below it. The root is never a member. Two sets with the same
/// paths are equal and have the same `fieldsV1`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// The steps with their nodes, sorted. Walks over objects produce steps in order, so that an insertion is a push. A set
    /// is created and dropped with every write, and vectors need far fewer allocations than trees.
    nodes: Vec<(PathElement, SetNode)>,
}

/// The entry of a step in a [`FieldSet`]: whether the step is a member, and the members below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SetNode {
    /// Whether the step itself is a member.
    pub is_member: bool,
    /// The members below the step.
    pub below: FieldSet,
}

/// A path. Displays as in conflicts: `.spec.containers[name="a"].image`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldPath(pub Vec<PathElement>);

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

impl SetNode {
    /// Returns whether neither the step nor any path below it is a member.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    fn join(&mut self, other: Self) {
        self.is_member |= other.is_member;
        self.below.join(other.below);
    }
}

impl FieldSet {
    /// Creates a set from paths of member names: `[&["status"], &["metadata", "labels"]]`.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Returns whether the set has no paths.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path. The empty path is ignored.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.node_mut(first);
        if rest.is_empty() {
            node.is_member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// Returns whether exactly this path is in the set.
    pub(crate) fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.node(last).is_some_and(|node| node.is_member),
            [first, rest @ ..] => self.node(first).is_some_and(|node| node.below.has(rest)),
        }
    }

    /// Returns the node of a step.
    pub(crate) fn node(&self, element: &PathElement) -> Option<&SetNode> {
        let position = self.position(element).ok()?;
        self.nodes.get(position).map(|(_, node)| node)
    }

    /// Returns the index of a step, or the index at which to insert it.
    fn position(&self, element: &PathElement) -> Result<usize, usize> {
        match self.nodes.last() {
            None => Err(0),
            Some((last, _)) if last < element => Err(self.nodes.len()),
            _ => self.nodes.binary_search_by(|(other, _)| other.cmp(element)),
        }
    }

    /// Returns the node of a step for modification, adding it if necessary.
    fn node_mut(&mut self, element: &PathElement) -> &mut SetNode {
        let position = self.position(element).unwrap_or_else(|position| {
            self.nodes.insert(position, (element.clone(), SetNode::default()));
            position
        });
        &mut self.nodes[position].1
    }

    /// Returns every step with its node, in order.
    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = (&PathElement, &SetNode)> {
        self.nodes.iter().map(|(element, node)| (element, node))
    }

    /// Adds a node to a step.
    pub(crate) fn join_node(&mut self, element: PathElement, node: SetNode) {
        if node.is_empty() {
            return;
        }
        match self.position(&element) {
            Ok(position) => self.nodes[position].1.join(node),
            Err(position) => self.nodes.insert(position, (element, node)),
        }
    }

    /// Adds the paths of `other`.
    pub(crate) fn join(&mut self, other: Self) {
        let is_behind = match (self.nodes.last(), other.nodes.first()) {
            (Some((last, _)), Some((first, _))) => last < first,
            _ => true,
        };
        if self.nodes.is_empty() {
            *self = other;
        } else if is_behind {
            self.nodes.extend(other.nodes);
        } else if other.nodes.len() == 1 {
            for (element, node) in other.nodes {
                self.join_node(element, node);
            }
        } else {
            // Both are sorted, so they are merged in one pass. Each single insertion would shift all later entries.
            let own = std::mem::take(&mut self.nodes);
            self.nodes.reserve(own.len() + other.nodes.len());
            let mut others = other.nodes.into_iter().peekable();
            for (element, mut node) in own {
                while let Some(before) = others.next_if(|(other, _)| *other < element) {
                    self.nodes.push(before);
                }
                if let Some((_, same)) = others.next_if(|(other, _)| *other == element) {
                    node.join(same);
                }
                self.nodes.push((element, node));
            }
            self.nodes.extend(others);
        }
    }

    /// Creates a set from steps in any order. A step may occur more than once.
    pub(crate) fn from_nodes(mut nodes: Vec<(PathElement, SetNode)>) -> Self {
        nodes.retain(|(_, node)| !node.is_empty());
        nodes.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut set = Self { nodes: Vec::with_capacity(nodes.len()) };
        for (element, node) in nodes {
            match set.nodes.last_mut() {
                Some((last, known)) if *last == element => known.join(node),
                _ => set.nodes.push((element, node)),
            }
        }
        set
    }

    /// Removes the paths of `other`, but not the paths below them.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.retain(other, |node, other| {
            node.is_member &= !other.is_member;
            node.below.subtract(&other.below);
        });
    }

    /// Removes the paths of `other` and all paths below them.
    pub(crate) fn subtract_below(&mut self, other: &Self) {
        self.retain(other, |node, other| {
            if other.is_member {
                *node = SetNode::default();
            } else {
                node.below.subtract_below(&other.below);
            }
        });
    }

    fn retain(&mut self, other: &Self, change: impl Fn(&mut SetNode, &SetNode)) {
        if other.is_empty() {
            return;
        }
        // Both are sorted, so one walk over the other set finds every step of this one.
        let mut others = other.nodes.iter().peekable();
        self.nodes.retain_mut(|(element, node)| {
            while others.next_if(|(other, _)| *other < *element).is_some() {}
            if let Some((_, other)) = others.next_if(|(other, _)| other == element) {
                change(node, other);
            }
            !node.is_empty()
        });
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for (element, node) in &self.nodes {
            if let Some(other) = other.node(element) {
                let is_member = node.is_member && other.is_member;
                both.join_node(
                    element.clone(),
                    SetNode { is_member, below: node.below.intersection(&other.below) },
                );
            }
        }
        both
    }

    /// Returns every path: at each level, first the paths that end there, then the longer ones.
    pub(crate) fn paths(&self) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<FieldPath>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.is_member) {
            paths.push(FieldPath(prefix.iter().chain([element]).cloned().collect()));
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Returns the same set with every struct added that has a path of the set below it.
    ///
    /// Managers do not own the structs around their fields. To remove a field completely, structs that become empty must be
    /// removed too.
    #[must_use]
    pub(crate) fn with_structs(&self, ty: Option<&TypeRef>) -> Self {
        let nodes = self.nodes.iter().map(|(element, node)| {
            let (is_declared, below) = match (element, ty) {
                (PathElement::Field(name), Some(ty)) => (ty.field(name).is_some(), ty.member(name)),
                (PathElement::Key(_), Some(ty)) => (false, ty.item()),
                _ => (false, None),
            };
            let is_member = node.is_member || (is_declared && !node.below.is_empty());
            (element.clone(), SetNode { is_member, below: node.below.with_structs(below.as_ref()) })
        });
        Self { nodes: nodes.collect() }
    }

    /// Adapts the set to a change of the schema: a value that became atomic is owned as a whole by every manager that owned
    /// a part of it.
    pub(crate) fn follow_schema(&mut self, ty: &TypeRef) {
        for (element, node) in self.nodes.iter_mut().filter(|(_, node)| !node.below.is_empty()) {
            let below = match element {
                PathElement::Field(name) => ty.member(name),
                PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => ty.item(),
            };
            let Some(below) = below else { continue };
            if is_atomic(&below) {
                *node = SetNode { is_member: true, below: Self::default() };
            } else if !matches!(below.shape(), Shape::Any) {
                node.below.follow_schema(&below);
            }
        }
    }
}

fn is_atomic(ty: &TypeRef) -> bool {
    use crate::schema::Topology;
    match ty.shape() {
        Shape::Struct(members) => members.is_atomic,
        Shape::Map { is_atomic, .. } => *is_atomic,
        Shape::List { topology, .. } => *topology == Topology::Atomic,
        Shape::Any => ty.is_opaque(),
        Shape::Scalar(_) => false,
    }
}
