//! Defaulting.
//!
//! Defaults are tables of [`Fill`]s: path, member, value. The variants follow the Go types of the API: an empty string or a
//! zero counts as absent, except in pointer fields.

use serde_json::{Map, Value};

use super::path::{PathStep, PathTarget};

/// The members of a JSON object.
pub(crate) type Members = Map<String, Value>;

/// A default: a scalar, or an object to be filled further.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// A string default.
    Str(&'static str),
    /// A string default of a pointer field: the empty string is a value.
    StrPtr(&'static str),
    /// An integer default; zero counts as absent.
    Int(i64),
    /// An integer default of a pointer field: zero is a value.
    IntPtr(i64),
    /// A boolean default.
    Bool(bool),
    /// An empty object.
    EmptyObject,
    /// An explicit null, for fields that are present even if they are empty.
    Null,
}

impl From<DefaultValue> for Value {
    fn from(literal: DefaultValue) -> Self {
        match literal {
            DefaultValue::Str(text) | DefaultValue::StrPtr(text) => text.into(),
            DefaultValue::Int(number) | DefaultValue::IntPtr(number) => number.into(),
            DefaultValue::Bool(is_true) => is_true.into(),
            DefaultValue::EmptyObject => Value::Object(Members::new()),
            DefaultValue::Null => Value::Null,
        }
    }
}

/// The path, the member and its default. A path looks like `spec.containers|initContainers[].ports[]`: `|` between names
/// means each of them, `[]` each item, `{}` each value of a map. The empty path is the value itself.
pub(crate) type Fill = (&'static str, &'static str, DefaultValue);

/// Sets a table of defaults, in order. Consecutive rows with one path are a single walk.
pub(crate) fn fill_all(value: &mut Value, table: &[Fill]) {
    for rows in table.chunk_by(|(path, ..), (next, ..)| path == next) {
        let Some(&(path, ..)) = rows.first() else { continue };
        each(value, path, &mut |members| {
            for &(_, member, literal) in rows {
                fill(members, member, literal);
            }
        });
    }
}

/// Sets `member` unless it has a value.
pub(crate) fn fill(members: &mut Members, member: &str, literal: DefaultValue) {
    let is_left_out = match (members.get(member), literal) {
        (None | Some(Value::Null), _) => true,
        (Some(Value::Array(items)), DefaultValue::Null) => items.is_empty(),
        (Some(Value::String(text)), DefaultValue::Str(_)) => text.is_empty(),
        (Some(Value::Number(number)), DefaultValue::Int(_)) => number.as_i64() == Some(0),
        _ => false,
    };
    if is_left_out {
        members.insert(member.to_owned(), literal.into());
    }
}

/// Calls `change` with each object at `path`.
pub(crate) fn each(value: &mut Value, path: &str, change: &mut dyn FnMut(&mut Members)) {
    let Some((step, rest)) = PathStep::first(path) else {
        if let Value::Object(members) = value {
            change(members);
        }
        return;
    };
    for name in step.names() {
        match (value.get_mut(name), step.target) {
            (Some(Value::Array(items)), PathTarget::Items) => {
                for item in items {
                    each(item, rest, change);
                }
            }
            (Some(Value::Object(members)), PathTarget::Values) => {
                for member in members.values_mut() {
                    each(member, rest, change);
                }
            }
            (Some(member), PathTarget::Member) => each(member, rest, change),
            _ => {}
        }
    }
}

/// Returns the object `name`, adding it if it is absent. None if the value is not an object.
pub(crate) fn object<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Members> {
    let members = value.as_object_mut()?;
    let member = members.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Members::new());
    }
    member.as_object_mut()
}

/// Returns the object at a path of plain names, adding it if it is absent.
pub(crate) fn object_at<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Members> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return object(value, first);
    }
    object(value, first)?;
    object_at(value.get_mut(*first)?, rest)
}

/// Copies `member` from `old`, removing it if it is absent there.
pub(crate) fn take_from(object: &mut Value, old: &Value, member: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match old.get(member) {
        Some(value) => {
            members.insert(member.to_owned(), value.clone());
        }
        None => {
            members.remove(member);
        }
    }
}

/// Compares two values as upstream does: an absent member, null, an empty string and an empty list are equal.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    fn is_unset(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        }
    }
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            // Members of both are compared once: comparing them from either side would double the work at each level.
            left.iter().all(|(name, value)| match right.get(name) {
                Some(other) => is_same(value, other),
                None => is_unset(value),
            }) && right.iter().all(|(name, value)| left.contains_key(name) || is_unset(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        _ => left == right || (is_unset(left) && is_unset(right)),
    }
}

/// Returns the string value of a member; empty if absent.
pub(crate) fn text<'a>(members: &'a Members, member: &str) -> &'a str {
    members.get(member).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DefaultValue, fill_all, is_same};
    use crate::complexity::assert_linear;

    #[test]
    fn empty_values_equal_absent_values() {
        let full = json!({"a": [{"b": 1}], "c": "d"});
        assert!(is_same(&full, &json!({"a": [{"b": 1, "x": null}], "c": "d", "e": [], "f": ""})));
        assert!(!is_same(&full, &json!({"a": [{"b": 1}], "c": "d", "e": {}})));
        assert!(!is_same(&full, &json!({"a": [], "c": "d"})));
        assert!(is_same(&json!({"c": "d"}), &json!({"c": "d", "e": []})));
        assert!(!is_same(&json!({"c": "d"}), &json!({"c": "d", "e": 1})));
    }

    #[test]
    fn defaults_fill_absent_fields_only() {
        let mut object = json!({"a": {"l": [{"x": ""}, {"x": "kept"}, 7]}, "b": {"l": [{"n": 0}]}});
        fill_all(
            &mut object,
            &[
                ("a|b.l[]", "x", DefaultValue::Str("text")),
                ("b.l[]", "n", DefaultValue::Int(5)),
                ("c", "never", DefaultValue::Bool(true)),
                ("", "o", DefaultValue::EmptyObject),
                ("o", "z", DefaultValue::IntPtr(0)),
            ],
        );
        let expected = json!({
            "a": {"l": [{"x": "text"}, {"x": "kept"}, 7]},
            "b": {"l": [{"n": 5, "x": "text"}]},
            "o": {"z": 0},
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn deep_objects_are_compared_in_linear_time() {
        let deep = |depth| (0..depth).fold(json!(1), |inner, _| json!({"properties": inner}));
        assert_linear("nested objects", 5, deep, |value| is_same(value, &value.clone()));
    }
}
