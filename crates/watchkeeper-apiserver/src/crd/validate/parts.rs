//! Iteration over nested objects and lists.

use serde_json::Value;

use crate::{
    crd::structural::{Additional, Structural},
    field::MAX_TEXT_BYTES,
};

/// Calls `visit` with each object and list directly in `value`, its schema and its path.
pub(super) fn each_part(
    value: &Value,
    schema: &Structural,
    path: &str,
    mut visit: impl FnMut(&Value, &Structural, &str),
) {
    let path = cut(path);
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(_, member)| has_parts(member)) {
                if let Some(property) = schema.properties.get(name) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    visit(member, property, &path);
                } else if let Additional::Of(of) = &schema.additional {
                    visit(member, of, &format!("{path}[{name}]"));
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = &schema.items {
                for (index, item) in items.iter().enumerate().filter(|(_, item)| has_parts(item)) {
                    visit(item, of, &format!("{path}[{index}]"));
                }
            }
        }
        _ => {}
    }
}

/// Returns the beginning of a path that is shown in errors.
pub(super) fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(MAX_TEXT_BYTES)]
}

fn has_parts(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
