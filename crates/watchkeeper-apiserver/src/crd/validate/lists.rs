//! Lists whose items must differ.

use std::collections::HashMap;

use serde_json::Value;

use super::parts::{cut, each_part};
use crate::{
    crd::structural::{ListType, Structural},
    field::{FieldError, FieldErrorKind, MAX_ERRORS, truncated},
};

/// The values of the keys of an item. Absent keys are equal.
type Identity<'a> = Vec<Option<&'a Value>>;

fn identity<'a>(item: &'a Value, keys: &[String]) -> Identity<'a> {
    keys.iter().map(|key| item.get(key)).collect()
}

/// Calls `report` with the index of the second item of each duplicate identity, while it returns true.
fn repeated<'a>(identities: impl Iterator<Item = Identity<'a>>, mut report: impl FnMut(usize) -> bool) {
    let mut counts: HashMap<Identity<'a>, u8> = HashMap::new();
    for (index, identity) in identities.enumerate() {
        let count = counts.entry(identity).or_default();
        *count = count.saturating_add(1);
        if *count == 2 && !report(index) {
            return;
        }
    }
}

/// Reports lists whose items must be unique and are not: one error for each duplicate value.
pub(crate) fn list_types(value: &Value, schema: &Structural, path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    if let Value::Array(items) = value {
        list(items, &schema.list, cut(path), errors);
    }
    each_part(value, schema, path, |part, schema, path| list_types(part, schema, path, errors));
}

fn list(items: &[Value], list: &ListType, path: &str, errors: &mut Vec<FieldError>) {
    match list {
        ListType::Atomic => {}
        ListType::Set => repeated(items.iter().map(|item| vec![Some(item)]), |index| {
            let path = format!("{path}[{index}]");
            let item = items.get(index).map(truncated);
            errors.push(FieldError::new(FieldErrorKind::Duplicate, path, item, ""));
            errors.len() < MAX_ERRORS
        }),
        ListType::Map(keys) => {
            if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                let path = format!("{path}[{index}]");
                let detail = "must be an object for an array of list-type map";
                let item = items.get(index).map(truncated);
                errors.push(FieldError::new(FieldErrorKind::Invalid, path, item, detail));
            } else {
                repeated(items.iter().map(|item| identity(item, keys)), |index| {
                    let path = format!("{path}[{index}]");
                    let given = |key: &String| Some((key.clone(), items.get(index)?.get(key)?.clone()));
                    let item = keys.iter().filter_map(given).collect();
                    errors.push(FieldError::new(FieldErrorKind::Duplicate, path, Some(item), ""));
                    errors.len() < MAX_ERRORS
                });
            }
        }
    }
}
