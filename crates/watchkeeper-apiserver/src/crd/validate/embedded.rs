//! Objects in objects.

use serde_json::Value;

use super::parts::{cut, each_part};
use crate::{
    crd::structural::Structural,
    field::{FieldError, FieldErrorKind, MAX_ERRORS},
};

/// Reports embedded resources without apiVersion or kind.
pub(crate) fn embedded(value: &Value, schema: &Structural, path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    if let Some(members) = value.as_object().filter(|_| schema.is_embedded) {
        for name in ["apiVersion", "kind"] {
            let is_given = members.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            if !is_given {
                let path = format!("{}.{name}", cut(path));
                errors.push(FieldError::new(FieldErrorKind::Required, path, None, "must not be empty"));
            }
        }
    }
    each_part(value, schema, path, |part, schema, path| embedded(part, schema, path, errors));
}
