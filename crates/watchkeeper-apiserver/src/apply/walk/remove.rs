//! Parts of an object taken out.

use serde_json::{Map, Value};

use super::item::element_of;
use crate::{
    apply::{path::PathElement, set::FieldSet},
    schema::{Shape, Topology, TypeRef},
};

/// `value` without the paths of `set` and all below them; none when nothing is left of it.
///
/// Objects and lists of which nothing is left go away themselves, also where they were not to be removed: an empty one
/// would be something new.
pub fn remove(value: &Value, set: &FieldSet, ty: &TypeRef) -> Option<Value> {
    if set.is_empty() {
        return Some(value.clone());
    }
    match (ty.shape(), value) {
        // A path below something atomic cannot be taken out of it.
        (Shape::Struct(members), Value::Object(_)) if members.is_atomic => None,
        (Shape::Map { is_atomic: true, .. } | Shape::List { topology: Topology::Atomic, .. }, _) => None,
        (Shape::Struct(_) | Shape::Map { .. } | Shape::Any, Value::Object(members)) => {
            remove_members(members, set, ty)
        }
        (Shape::List { topology, .. }, Value::Array(items)) => remove_items(items, set, ty, topology),
        (Shape::Scalar(_) | Shape::Any, _) => Some(value.clone()),
        (Shape::Struct(_) | Shape::Map { .. } | Shape::List { .. }, _) => None,
    }
}

fn remove_members(members: &Map<String, Value>, set: &FieldSet, ty: &TypeRef) -> Option<Value> {
    let mut left = Map::new();
    let mut was_emptied = false;
    for (name, value) in members {
        match set.node(&PathElement::field(name)) {
            None => {
                left.insert(name.clone(), value.clone());
            }
            Some(node) if node.is_member => {}
            Some(node) => match remove(value, &node.below, &ty.member(name).unwrap_or_else(TypeRef::any)) {
                Some(value) => {
                    left.insert(name.clone(), value);
                }
                None => was_emptied = true,
            },
        }
    }
    // Only one level goes at a time: upstream leaves a null that decoding drops.
    if left.is_empty() && !was_emptied { None } else { Some(Value::Object(left)) }
}

fn remove_items(items: &[Value], set: &FieldSet, ty: &TypeRef, topology: &Topology) -> Option<Value> {
    let item = ty.item().unwrap_or_else(TypeRef::any);
    let left: Vec<_> = items
        .iter()
        .filter_map(|value| {
            match element_of(value, topology).ok().and_then(|element| set.node(&element).cloned()) {
                None => Some(value.clone()),
                Some(node) if node.is_member => None,
                Some(node) => remove(value, &node.below, &item),
            }
        })
        .collect();
    if left.is_empty() { None } else { Some(Value::Array(left)) }
}
