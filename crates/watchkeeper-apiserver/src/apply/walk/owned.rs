//! The fields of an applied object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{SchemaMismatch, item::elements_of};
use crate::{
    apply::{
        path::PathElement,
        set::{FieldSet, SetNode},
    },
    schema::{Shape, Topology, TypeRef},
};

/// Returns the paths of everything in an object: scalars, atomic lists and objects, list items, and undeclared members.
///
/// # Errors
/// Returns a mismatch if items of a list cannot be identified.
pub(crate) fn owned(object: &Value, ty: &TypeRef) -> Result<FieldSet, SchemaMismatch> {
    Ok(owned_at(object, ty)?.below)
}

fn owned_at(value: &Value, ty: &TypeRef) -> Result<SetNode, SchemaMismatch> {
    let is_leaf = match ty.shape() {
        Shape::Scalar(_) => true,
        Shape::Struct(members) => members.is_atomic,
        Shape::Map { is_atomic, .. } => *is_atomic,
        Shape::List { topology, .. } => *topology == Topology::Atomic,
        Shape::Any => ty.is_opaque() || (!value.is_object() && !value.is_null()),
    };
    if is_leaf {
        return Ok(SetNode { is_member: true, below: FieldSet::default() });
    }
    match (ty.shape(), value) {
        (Shape::List { topology, .. }, Value::Array(items)) => owned_items(items, ty, topology),
        (Shape::List { .. }, _) => Ok(SetNode::default()),
        (_, Value::Object(members)) => owned_members(members, ty),
        _ => Ok(SetNode::default()),
    }
}

fn owned_members(members: &Map<String, Value>, ty: &TypeRef) -> Result<SetNode, SchemaMismatch> {
    let mut found = SetNode::default();
    for (name, value) in members {
        let element = PathElement::field(name);
        let member = ty.member(name).unwrap_or_else(TypeRef::any);
        let mut node = owned_at(value, &member).map_err(|mismatch| mismatch.below(&element))?;
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        node.is_member |= is_empty || ty.field(name).is_none();
        found.below.join_node(element, node);
    }
    Ok(found)
}

fn owned_items(items: &[Value], ty: &TypeRef, topology: &Topology) -> Result<SetNode, SchemaMismatch> {
    let item = ty.item().unwrap_or_else(TypeRef::any);
    let elements = elements_of(items, topology)?;
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<_> = elements.iter().filter(|element| !seen.insert(*element)).cloned().collect();
    let mut nodes = Vec::with_capacity(items.len());
    for (element, value) in elements.into_iter().zip(items) {
        let mut node = SetNode { is_member: true, below: FieldSet::default() };
        // An item that occurs more than once is owned as a whole.
        if !repeated.contains(&element) {
            node.below = owned_at(value, &item).map_err(|mismatch| mismatch.below(&element))?.below;
        }
        nodes.push((element, node));
    }
    Ok(SetNode { is_member: false, below: FieldSet::from_nodes(nodes) })
}
