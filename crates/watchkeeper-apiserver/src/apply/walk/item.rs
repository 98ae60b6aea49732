//! The identity of list items.

use serde_json::Value;

use super::SchemaMismatch;
use crate::{
    apply::path::{OrderedValue, PathElement},
    schema::{MapKey, Topology},
};

/// Returns the step to an item of a non-atomic list.
pub(super) fn element_of(item: &Value, topology: &Topology) -> Result<PathElement, SchemaMismatch> {
    match topology {
        Topology::Map { keys } => keyed(item, keys),
        Topology::Set => match item {
            Value::Object(_) => {
                Err(SchemaMismatch::new("associative list without keys has an element that's a map type"))
            }
            Value::Array(_) => {
                Err(SchemaMismatch::new("not supported: associative list with lists as elements"))
            }
            Value::Null => Err(SchemaMismatch::new(
                "associative list without keys has an element that's an explicit null",
            )),
            _ => Ok(PathElement::Value(OrderedValue(item.clone()))),
        },
        Topology::Atomic => Err(SchemaMismatch::new("invalid indexing of non-associative list")),
    }
}

/// Returns the step to an item with keys. A missing key without default is omitted, so an item without the key differs from
/// one with it.
fn keyed(item: &Value, keys: &[MapKey]) -> Result<PathElement, SchemaMismatch> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => {
            return Err(SchemaMismatch::new("associative list with keys may not have a null element"));
        }
        _ => return Err(SchemaMismatch::new("associative list with keys may not have non-map elements")),
    };
    let found: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            let value = members.get(&*key.name).or(key.default.as_ref())?;
            Some((key.name.clone(), OrderedValue(value.clone())))
        })
        .collect();
    if found.is_empty() && !keys.is_empty() {
        let names: Vec<_> = keys.iter().map(|key| format!("{:?}", key.name)).collect();
        return Err(SchemaMismatch::new(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            names.join(" ")
        )));
    }
    Ok(PathElement::key(found))
}

/// Returns the steps to all items, in their order.
pub(super) fn elements_of(items: &[Value], topology: &Topology) -> Result<Vec<PathElement>, SchemaMismatch> {
    let elements = items.iter().enumerate().map(|(index, item)| {
        element_of(item, topology)
            .map_err(|mismatch| SchemaMismatch::new(format!("element {index}: {mismatch}")))
    });
    elements.collect()
}
