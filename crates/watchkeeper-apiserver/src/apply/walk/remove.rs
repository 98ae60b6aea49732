//! The removal of parts of an object.

use serde_json::{Map, Value};

use super::item::element_of;
use crate::{
    apply::{path::PathElement, set::FieldSet},
    schema::{Shape, Topology, TypeRef},
};

/// The treatment of a member that becomes empty without being removed itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptiedMember {
    /// The member becomes null, because it may still have a manager.
    Null,
    /// The member is removed, because null has no meaning in a stored object.
    Removed,
}

/// Returns `value` without the paths of `set` and all paths below them. None if nothing is left.
pub(crate) fn remove(value: &Value, set: &FieldSet, ty: &TypeRef, emptied: EmptiedMember) -> Option<Value> {
    if set.is_empty() {
        return Some(value.clone());
    }
    match (ty.shape(), value) {
        // A path below an atomic value cannot be removed from it.
        (Shape::Struct(members), Value::Object(_)) if members.is_atomic => None,
        (Shape::Map { is_atomic: true, .. } | Shape::List { topology: Topology::Atomic, .. }, _) => None,
        (Shape::Any, _) if ty.is_opaque() => None,
        (Shape::Struct(_) | Shape::Map { .. } | Shape::Any, Value::Object(members)) => {
            remove_members(members, set, ty, emptied)
        }
        (Shape::List { topology, .. }, Value::Array(items)) => {
            remove_items(items, set, ty, topology, emptied)
        }
        (Shape::Scalar(_) | Shape::Any, _) => Some(value.clone()),
        (Shape::Struct(_) | Shape::Map { .. } | Shape::List { .. }, _) => None,
    }
}

fn remove_members(
    members: &Map<String, Value>,
    set: &FieldSet,
    ty: &TypeRef,
    emptied: EmptiedMember,
) -> Option<Value> {
    let mut left = Map::new();
    let mut has_emptied = false;
    for (name, value) in members {
        let value = match set.node(&PathElement::field(name)) {
            None => Some(value.clone()),
            Some(node) if node.is_member => continue,
            Some(node) => remove(value, &node.below, &ty.member(name).unwrap_or_else(TypeRef::any), emptied),
        };
        has_emptied |= value.is_none();
        if let Some(value) = value.or((emptied == EmptiedMember::Null).then_some(Value::Null)) {
            left.insert(name.clone(), value);
        }
    }
    if left.is_empty() && !has_emptied { None } else { Some(Value::Object(left)) }
}

fn remove_items(
    items: &[Value],
    set: &FieldSet,
    ty: &TypeRef,
    topology: &Topology,
    emptied: EmptiedMember,
) -> Option<Value> {
    let item = ty.item().unwrap_or_else(TypeRef::any);
    let left: Vec<_> = items
        .iter()
        .filter_map(|value| {
            let element = element_of(value, topology).ok();
            match element.and_then(|element| set.node(&element)) {
                None => Some(value.clone()),
                Some(node) if node.is_member => None,
                Some(node) => remove(value, &node.below, &item, emptied),
            }
        })
        .collect();
    if left.is_empty() { None } else { Some(Value::Array(left)) }
}
