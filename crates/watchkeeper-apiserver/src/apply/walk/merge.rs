//! The merge of two objects of a type.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{SchemaMismatch, item::elements_of};
use crate::{
    apply::path::PathElement,
    schema::{Shape, Topology, TypeRef},
};

/// Returns `base` with `top` merged into it: scalars and atomic values are replaced, others are merged. Nothing is removed.
///
/// Lists keep the order of `base` for items that are not in `top`, and use the order of `top` for the others.
///
/// # Errors
/// Returns a mismatch if items of a list cannot be identified, or if `top` contains an item twice.
pub(crate) fn merge(base: &Value, top: &Value, ty: &TypeRef) -> Result<Value, SchemaMismatch> {
    match (ty.shape(), base, top) {
        (Shape::Struct(members), ..) if members.is_atomic => Ok(top.clone()),
        (Shape::Map { is_atomic: true, .. }, ..) => Ok(top.clone()),
        (Shape::Any, ..) if ty.is_opaque() => Ok(top.clone()),
        (Shape::Struct(_) | Shape::Map { .. } | Shape::Any, Value::Object(base), Value::Object(top)) => {
            if base.is_empty() || top.is_empty() {
                // Nothing to merge: an empty object is a value if both are empty.
                let either = if top.is_empty() { base } else { top };
                return Ok(Value::Object(either.clone()));
            }
            merge_members(base, top, ty)
        }
        (Shape::Struct(_) | Shape::Map { .. } | Shape::Any, Value::Object(base), Value::Null)
            if !base.is_empty() =>
        {
            Ok(Value::Object(base.clone()))
        }
        (Shape::List { topology, .. }, Value::Array(base), Value::Array(top))
            if *topology != Topology::Atomic =>
        {
            if top.is_empty() {
                return Ok(Value::Array(base.clone()));
            }
            merge_items(base, top, ty, topology)
        }
        (Shape::List { topology, .. }, Value::Array(base), Value::Null)
            if *topology != Topology::Atomic && !base.is_empty() =>
        {
            Ok(Value::Array(base.clone()))
        }
        _ => Ok(top.clone()),
    }
}

fn merge_members(
    base: &Map<String, Value>,
    top: &Map<String, Value>,
    ty: &TypeRef,
) -> Result<Value, SchemaMismatch> {
    let mut merged = base.clone();
    for (name, top) in top {
        let value = match base.get(name) {
            Some(base) => {
                let member = ty.member(name).unwrap_or_else(TypeRef::any);
                merge(base, top, &member).map_err(|mismatch| mismatch.below(&PathElement::field(name)))?
            }
            None => top.clone(),
        };
        merged.insert(name.clone(), value);
    }
    Ok(Value::Object(merged))
}

fn merge_items(
    base: &[Value],
    top: &[Value],
    ty: &TypeRef,
    topology: &Topology,
) -> Result<Value, SchemaMismatch> {
    let item = ty.item().unwrap_or_else(TypeRef::any);
    let (base_elements, top_elements) = (elements_of(base, topology)?, elements_of(top, topology)?);

    // An item that occurs twice in the base cannot be merged.
    let mut in_base: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (element, value) in base_elements.iter().zip(base) {
        in_base.entry(element).and_modify(|value| *value = None).or_insert(Some(value));
    }
    let mut in_top: BTreeSet<&PathElement> = BTreeSet::new();
    for element in &top_elements {
        if !in_top.insert(element) {
            return Err(SchemaMismatch::new(format!("duplicate entries for key {element}")));
        }
    }
    let merged_item = |element: &PathElement, value: &Value| match in_base.get(element).copied().flatten() {
        Some(base) => merge(base, value, &item).map_err(|mismatch| mismatch.below(element)),
        None => Ok(value.clone()),
    };

    let mut shared: VecDeque<&PathElement> =
        top_elements.iter().filter(|element| in_base.contains_key(element)).collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::with_capacity(base.len().max(top.len()));
    let (mut at_base, mut at_top) = (0, 0);
    while at_base < base.len() || at_top < top.len() {
        let (left, right) = (base_elements.get(at_base), top_elements.get(at_top));
        if let (Some(left), Some(right)) = (left, right) {
            if left == right {
                merged.push(merged_item(right, &top[at_top])?);
                done.insert(right);
                at_base += 1;
                at_top += 1;
                next_shared = shared.pop_front();
                continue;
            }
            let is_later = in_top.contains(left) && next_shared.is_some_and(|next| next != left);
            if is_later {
                at_base += 1;
                continue;
            }
        }
        if let Some(left) = left {
            if !in_top.contains(left) {
                merged.push(base[at_base].clone());
                at_base += 1;
                continue;
            }
            if done.contains(left) {
                at_base += 1;
            }
        }
        if let Some(right) = right {
            merged.push(merged_item(right, &top[at_top])?);
            done.insert(right);
            at_top += 1;
            if next_shared == Some(right) {
                next_shared = shared.pop_front();
            }
        }
    }
    Ok(Value::Array(merged))
}
