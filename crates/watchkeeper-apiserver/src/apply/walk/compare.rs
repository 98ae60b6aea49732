//! The differences between two objects of a type.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{SchemaMismatch, item::elements_of};
use crate::{
    apply::{
        path::{PathElement, same},
        set::{FieldSet, SetNode},
    },
    schema::{Shape, Topology, TypeRef},
};

/// The paths that differ between two objects. The sets are disjoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The paths only in the old object.
    pub removed: FieldSet,
    /// The paths in both objects with different values.
    pub modified: FieldSet,
    /// The paths only in the new object.
    pub added: FieldSet,
}

/// The differences at one path and below it.
#[derive(Default)]
struct Differences {
    removed: SetNode,
    modified: SetNode,
    added: SetNode,
}

/// Compares two objects. None means that the object does not exist.
///
/// # Errors
/// Returns a mismatch if items of a list cannot be identified, because they lack their keys or have the wrong
/// type.
pub(crate) fn compare(
    old: Option<&Value>,
    new: Option<&Value>,
    ty: &TypeRef,
) -> Result<Changes, SchemaMismatch> {
    let Differences { removed, modified, added } = compare_path(old, new, ty)?;
    Ok(Changes { removed: removed.below, modified: modified.below, added: added.below })
}

fn members_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn items_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The way in which a value without a known type is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Leaf,
    Members,
}

fn class(value: &Value) -> Class {
    match value {
        Value::Object(_) | Value::Null => Class::Members,
        // Lists of unknown items are atomic.
        _ => Class::Leaf,
    }
}

fn compare_path(
    old: Option<&Value>,
    new: Option<&Value>,
    ty: &TypeRef,
) -> Result<Differences, SchemaMismatch> {
    let mut found = Differences::default();
    let is_leaf = match ty.shape() {
        Shape::Scalar(_) => leaf(&mut found, old, new),
        Shape::Struct(members) => compare_members(&mut found, old, new, ty, members.is_atomic)?,
        Shape::Map { is_atomic, .. } => compare_members(&mut found, old, new, ty, *is_atomic)?,
        Shape::List { topology, .. } => compare_items(&mut found, old, new, ty, topology)?,
        Shape::Any if ty.is_opaque() => leaf(&mut found, old, new),
        Shape::Any => {
            let mut is_leaf = false;
            let (left, right) = (old.map(class), new.map(class));
            // A value whose class changed has the differences of both classes.
            for class in [left, right.filter(|right| Some(*right) != left)].into_iter().flatten() {
                is_leaf = match class {
                    Class::Leaf => leaf(&mut found, old, new),
                    Class::Members => compare_members(&mut found, old, new, ty, false)?,
                };
            }
            is_leaf
        }
    };
    if !is_leaf {
        found.added.is_member |= old.is_none();
        found.removed.is_member |= new.is_none();
    }
    Ok(found)
}

fn leaf(found: &mut Differences, old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (None, _) => found.added.is_member = true,
        (_, None) => found.removed.is_member = true,
        (Some(old), Some(new)) => found.modified.is_member |= !same(old, new),
    }
    true
}

fn compare_members(
    found: &mut Differences,
    old: Option<&Value>,
    new: Option<&Value>,
    ty: &TypeRef,
    is_atomic: bool,
) -> Result<bool, SchemaMismatch> {
    let (left, right) = (members_of(old), members_of(new));
    let is_empty = |members: Option<&Map<String, Value>>| members.is_none_or(Map::is_empty);
    if is_atomic || (is_empty(left) && is_empty(right)) {
        return Ok(leaf(found, old, new));
    }
    for (name, value) in right.into_iter().flatten() {
        let before = left.and_then(|left| left.get(name));
        compare_member(found, name, before, Some(value), ty)?;
    }
    for (name, value) in left.into_iter().flatten() {
        if right.is_none_or(|right| !right.contains_key(name)) {
            compare_member(found, name, Some(value), None, ty)?;
        }
    }
    Ok(false)
}

fn compare_member(
    found: &mut Differences,
    name: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    ty: &TypeRef,
) -> Result<(), SchemaMismatch> {
    // Most of an update is unchanged. Detecting this without types is several times as fast.
    if old.is_some() && old == new {
        return Ok(());
    }
    // A member that the schema does not declare was accepted earlier, and is compared like any other unknown value.
    let member = ty.member(name).unwrap_or_else(TypeRef::any);
    let below =
        compare_path(old, new, &member).map_err(|mismatch| mismatch.below(&PathElement::field(name)))?;
    // Most members of most updates are unchanged, so their names are not allocated.
    if !below.is_empty() {
        found.join(PathElement::field(name), below);
    }
    Ok(())
}

fn compare_items(
    found: &mut Differences,
    old: Option<&Value>,
    new: Option<&Value>,
    ty: &TypeRef,
    topology: &Topology,
) -> Result<bool, SchemaMismatch> {
    let (left, right) = (items_of(old), items_of(new));
    if *topology == Topology::Atomic || (left.is_empty() && right.is_empty()) {
        return Ok(leaf(found, old, new));
    }
    let item = ty.item().unwrap_or_else(TypeRef::any);
    let mut by_element: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (element, value) in elements_of(left, topology)?.into_iter().zip(left) {
        by_element.entry(element).or_default().0.push(value);
    }
    for (element, value) in elements_of(right, topology)?.into_iter().zip(right) {
        by_element.entry(element).or_default().1.push(value);
    }
    for (element, (left, right)) in by_element {
        let mut compare_one = |old, new| {
            let below = compare_path(old, new, &item).map_err(|mismatch| mismatch.below(&element))?;
            found.join(element.clone(), below);
            Ok(())
        };
        // An item that occurs more than once is compared as a whole.
        match (&*left, &*right) {
            ([] | [_], [] | [_]) => compare_one(first(&left), first(&right))?,
            ([_, _, ..], [_, _, ..]) => {
                let is_same = left.len() == right.len()
                    && left.iter().zip(&right).all(|(left, right)| same(left, right));
                found
                    .modified
                    .below
                    .join_node(element, SetNode { is_member: !is_same, below: FieldSet::default() });
            }
            ([_, _, ..], _) => {
                if !right.is_empty() {
                    compare_one(None, first(&right))?;
                }
                found
                    .removed
                    .below
                    .join_node(element, SetNode { is_member: true, below: FieldSet::default() });
            }
            (_, [_, _, ..]) => {
                if !left.is_empty() {
                    compare_one(first(&left), None)?;
                }
                found.added.below.join_node(element, SetNode { is_member: true, below: FieldSet::default() });
            }
        }
    }
    Ok(false)
}

fn first<'a>(values: &[&'a Value]) -> Option<&'a Value> {
    values.first().copied()
}

impl Differences {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    fn join(&mut self, element: PathElement, below: Self) {
        let mut sets = [
            (&mut self.removed.below, below.removed),
            (&mut self.modified.below, below.modified),
            (&mut self.added.below, below.added),
        ]
        .into_iter()
        .filter(|(_, node)| !node.is_empty())
        .peekable();
        let mut element = Some(element);
        while let Some((set, node)) = sets.next() {
            // The step is cloned for all sets but the last.
            let step = if sets.peek().is_some() { element.clone() } else { element.take() };
            if let Some(step) = step {
                set.join_node(step, node);
            }
        }
    }
}
