//! What differs between two objects of a type.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Fault, item::elements_of};
use crate::{
    apply::{
        path::{PathElement, same},
        set::{FieldSet, Node},
    },
    schema::{Field, Shape, Topology, TypeRef},
};

/// The paths that differ between two objects; no path is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Only in the old object.
    pub removed: FieldSet,
    /// In both, with other values.
    pub modified: FieldSet,
    /// Only in the new object.
    pub added: FieldSet,
}

/// One of two objects, or the same place in it.
#[derive(Debug, Clone, Copy)]
pub enum Side<'a> {
    /// There is nothing.
    Absent,
    /// What the type is before anything is set in it: structs that are no pointers are there, and so are required
    /// members, as null. Only built-in types have one.
    Zero,
    /// There is a value, null included.
    Is(&'a Value),
}

static NULL: Value = Value::Null;

/// What a walk found at one place and below it.
#[derive(Default)]
struct Found {
    removed: Node,
    modified: Node,
    added: Node,
}

/// Compares two objects.
///
/// # Errors
/// When items of a list cannot be told apart, because they lack their keys or are of the wrong type.
pub fn compare(old: Side<'_>, new: Side<'_>, ty: &TypeRef) -> Result<Changes, Fault> {
    let Found { removed, modified, added } = compare_place(old, new, ty)?;
    Ok(Changes { removed: removed.below, modified: modified.below, added: added.below })
}

impl<'a> Side<'a> {
    /// A value, or nothing.
    pub fn from(value: Option<&'a Value>) -> Self {
        value.map_or(Side::Absent, Side::Is)
    }

    fn is_absent(self) -> bool {
        matches!(self, Side::Absent)
    }

    fn members(self) -> Option<&'a Map<String, Value>> {
        if let Side::Is(value) = self { value.as_object() } else { None }
    }

    fn items(self) -> &'a [Value] {
        if let Side::Is(Value::Array(items)) = self { items } else { &[] }
    }
}

/// How a value without a known type is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Leaf,
    Members,
}

fn class(side: Side<'_>) -> Option<Class> {
    match side {
        Side::Absent => None,
        Side::Is(Value::Object(_) | Value::Null) | Side::Zero => Some(Class::Members),
        // Lists of nothing known are atomic.
        Side::Is(_) => Some(Class::Leaf),
    }
}

fn compare_place(old: Side<'_>, new: Side<'_>, ty: &TypeRef) -> Result<Found, Fault> {
    let mut found = Found::default();
    let is_leaf = match ty.shape() {
        Shape::Scalar(_) => leaf(&mut found, old, new),
        Shape::Struct(members) => compare_members(&mut found, old, new, ty, members.is_atomic)?,
        Shape::Map { is_atomic, .. } => compare_members(&mut found, old, new, ty, *is_atomic)?,
        Shape::List { topology, .. } => compare_items(&mut found, old, new, ty, topology)?,
        Shape::Any => {
            let mut is_leaf = false;
            let (left, right) = (class(old), class(new));
            // A value that changed what it is has the differences of both.
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
        found.added.is_member |= old.is_absent();
        found.removed.is_member |= new.is_absent();
    }
    Ok(found)
}

fn leaf(found: &mut Found, old: Side<'_>, new: Side<'_>) -> bool {
    match (old, new) {
        (Side::Absent, _) => found.added.is_member = true,
        (_, Side::Absent) => found.removed.is_member = true,
        (Side::Is(old), Side::Is(new)) => found.modified.is_member |= !same(old, new),
        (Side::Zero, Side::Is(value)) | (Side::Is(value), Side::Zero) => {
            found.modified.is_member |= !value.as_object().is_some_and(Map::is_empty);
        }
        (Side::Zero, Side::Zero) => {}
    }
    true
}

fn compare_members(
    found: &mut Found,
    old: Side<'_>,
    new: Side<'_>,
    ty: &TypeRef,
    is_atomic: bool,
) -> Result<bool, Fault> {
    let (left, right) = (old.members(), new.members());
    let is_empty = |members: Option<&Map<String, Value>>| members.is_none_or(Map::is_empty);
    let has_zero = matches!(old, Side::Zero);
    if is_atomic || (is_empty(left) && is_empty(right) && !has_zero) {
        return Ok(leaf(found, old, new));
    }
    for (name, value) in right.into_iter().flatten() {
        let before = match old {
            Side::Zero => zero(ty.field(name), ty),
            _ => Side::from(left.and_then(|left| left.get(name))),
        };
        compare_member(found, name, before, Side::Is(value), ty)?;
    }
    for (name, value) in left.into_iter().flatten() {
        if right.is_none_or(|right| !right.contains_key(name)) {
            compare_member(found, name, Side::Is(value), Side::Absent, ty)?;
        }
    }
    Ok(false)
}

fn compare_member(
    found: &mut Found,
    name: &str,
    old: Side<'_>,
    new: Side<'_>,
    ty: &TypeRef,
) -> Result<(), Fault> {
    // What the schema does not declare was let through before; it is walked as anything else unknown.
    let member = ty.member(name).unwrap_or_else(TypeRef::any);
    let element = PathElement::field(name);
    let below = compare_place(old, new, &member).map_err(|fault| fault.below(&element))?;
    found.join(&element, below);
    Ok(())
}

/// What a member is in a struct nothing was set in.
fn zero<'a>(field: Option<&'a Field>, ty: &TypeRef) -> Side<'a> {
    let Some(field) = field else { return Side::Absent };
    let is_struct = matches!(ty.at(field.ty).shape(), Shape::Struct(_));
    match &field.default {
        // An OpenAPI document gives structs that are no pointers this default.
        Some(Value::Object(members)) if is_struct && members.is_empty() => Side::Zero,
        Some(default) if field.is_required => Side::Is(default),
        None if field.is_required => Side::Is(&NULL),
        _ => Side::Absent,
    }
}

fn compare_items(
    found: &mut Found,
    old: Side<'_>,
    new: Side<'_>,
    ty: &TypeRef,
    topology: &Topology,
) -> Result<bool, Fault> {
    let (left, right) = (old.items(), new.items());
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
            let below = compare_place(old, new, &item).map_err(|fault| fault.below(&element))?;
            found.join(&element, below);
            Ok(())
        };
        // An item that is there more than once is one thing without parts.
        match (&*left, &*right) {
            ([] | [_], [] | [_]) => compare_one(first(&left), first(&right))?,
            ([_, _, ..], [_, _, ..]) => {
                let is_same = left.len() == right.len()
                    && left.iter().zip(&right).all(|(left, right)| same(left, right));
                found
                    .modified
                    .below
                    .join_node(element, Node { is_member: !is_same, below: FieldSet::default() });
            }
            ([_, _, ..], _) => {
                if !right.is_empty() {
                    compare_one(Side::Absent, first(&right))?;
                }
                found.removed.below.join_node(element, Node { is_member: true, below: FieldSet::default() });
            }
            (_, [_, _, ..]) => {
                if !left.is_empty() {
                    compare_one(first(&left), Side::Absent)?;
                }
                found.added.below.join_node(element, Node { is_member: true, below: FieldSet::default() });
            }
        }
    }
    Ok(false)
}

fn first<'a>(values: &[&'a Value]) -> Side<'a> {
    Side::from(values.first().copied())
}

impl Found {
    fn join(&mut self, element: &PathElement, below: Self) {
        for (set, node) in [
            (&mut self.removed.below, below.removed),
            (&mut self.modified.below, below.modified),
            (&mut self.added.below, below.added),
        ] {
            if !node.is_empty() {
                set.join_node(element.clone(), node);
            }
        }
    }
}
