//! The check that an applied object matches its type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{SchemaMismatch, item::element_of};
use crate::{
    apply::path::PathElement,
    schema::{Scalar, Shape, Topology, TypeRef},
};

/// Returns the mismatches between `value` and its type: undeclared members, values of another type, items that lack their
/// keys or occur twice.
pub(crate) fn check(value: &Value, ty: &TypeRef) -> Vec<SchemaMismatch> {
    let mut mismatches = Vec::new();
    check_at(value, ty, &mut mismatches);
    mismatches
}

fn check_at(value: &Value, ty: &TypeRef, mismatches: &mut Vec<SchemaMismatch>) {
    match (ty.shape(), value) {
        (_, Value::Null) | (Shape::Any, _) => {}
        (Shape::Scalar(scalar), _) => mismatches.extend(check_scalar(value, *scalar)),
        (Shape::Struct(_) | Shape::Map { .. }, Value::Object(members)) => {
            check_members(members, ty, mismatches);
        }
        (Shape::List { topology, .. }, Value::Array(items)) => check_items(items, ty, topology, mismatches),
        (Shape::Struct(_) | Shape::Map { .. }, _) => {
            mismatches.push(SchemaMismatch::new(format!("expected map, got {}", kind_of(value))));
        }
        (Shape::List { .. }, _) => {
            mismatches.push(SchemaMismatch::new(format!("expected list, got {}", kind_of(value))));
        }
    }
}

fn check_scalar(value: &Value, scalar: Scalar) -> Option<SchemaMismatch> {
    let (fits, expected) = match scalar {
        Scalar::String | Scalar::Bytes => (value.is_string(), "string"),
        Scalar::Int32 | Scalar::Int64 | Scalar::Number => (value.is_number(), "numeric (int or float)"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::IntOrString | Scalar::Quantity | Scalar::Time | Scalar::MicroTime => {
            (!value.is_object() && !value.is_array(), "any scalar")
        }
    };
    if fits {
        None
    } else {
        Some(SchemaMismatch::new(format!("expected {expected}, got {}", kind_of(value))))
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

fn check_members(members: &Map<String, Value>, ty: &TypeRef, mismatches: &mut Vec<SchemaMismatch>) {
    for (name, value) in members {
        let element = PathElement::field(name);
        match ty.member(name) {
            Some(member) => check_below(value, &member, &element, mismatches),
            None => mismatches.push(SchemaMismatch::new("field not declared in schema").below(&element)),
        }
    }
}

fn check_items(items: &[Value], ty: &TypeRef, topology: &Topology, mismatches: &mut Vec<SchemaMismatch>) {
    let item = ty.item().unwrap_or_else(TypeRef::any);
    let mut seen = BTreeSet::new();
    for (index, value) in items.iter().enumerate() {
        let element = if *topology == Topology::Atomic {
            PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
        } else {
            match element_of(value, topology) {
                Ok(element) => {
                    if !seen.insert(element.clone()) {
                        mismatches.push(SchemaMismatch::new(format!("duplicate entries for key {element}")));
                    }
                    element
                }
                Err(mismatch) => {
                    mismatches.push(SchemaMismatch::new(format!("element {index}: {mismatch}")));
                    return;
                }
            }
        };
        check_below(value, &item, &element, mismatches);
    }
}

fn check_below(value: &Value, ty: &TypeRef, element: &PathElement, mismatches: &mut Vec<SchemaMismatch>) {
    let before = mismatches.len();
    check_at(value, ty, mismatches);
    for mismatch in mismatches.split_off(before) {
        mismatches.push(mismatch.below(element));
    }
}
