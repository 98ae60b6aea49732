//! Validation errors of single fields: the causes of a 422.

use std::io;

use serde_json::Value;

/// The kind of a [`FieldError`], named like the `reason` of a cause on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum FieldErrorKind {
    /// A required value is missing.
    Required,
    /// A value is malformed or not permitted. Changes of immutable fields are of this kind too.
    Invalid,
    /// A value is outside a fixed set.
    NotSupported,
    /// A value occurs twice where values must be unique.
    Duplicate,
    /// A value is well-formed but not permitted in this field or object.
    Forbidden,
    /// A value has the wrong JSON type.
    TypeInvalid,
    /// A string or list is too long.
    TooLong,
    /// A list or map has too many members.
    TooMany,
    /// A value refers to something that does not exist.
    NotFound,
    /// The server failed to validate the value.
    Internal,
}

impl FieldErrorKind {
    /// Returns the reason on the wire, such as `FieldValueRequired`.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }
}

/// A validation error of one field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    /// The kind of the error.
    pub kind: FieldErrorKind,
    /// The path of the field, such as `spec.containers[0].name` or `metadata.labels[a/b]`.
    pub path: String,
    /// The rejected value; none where upstream omits it.
    pub bad_value: Option<Value>,
    /// The explanation, which usually describes a valid value.
    pub detail: String,
}

impl FieldError {
    /// Creates an error of `kind` at `path`. Texts and values longer than [`MAX_TEXT_BYTES`] are shortened.
    pub(crate) fn new(
        kind: FieldErrorKind,
        path: impl Into<String>,
        bad_value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let bad_value = bad_value.map(|value| match value {
            Value::String(text) => Value::String(shortened(text)),
            value if is_short(&value) => value,
            value => truncated(&value),
        });
        Self { kind, path: shortened(path.into()), bad_value, detail: shortened(detail.into()) }
    }
}

/// The number of errors after which a check of an object stops.
pub(crate) const MAX_ERRORS: usize = 1_000;

/// The longest path, value or explanation of an error, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Returns `text`, cut to [`MAX_TEXT_BYTES`] if it is longer.
pub(crate) fn shortened(text: String) -> String {
    cut(text, MAX_TEXT_BYTES)
}

/// Returns `text`, cut to about `limit` bytes if it is longer. Dots mark the cut.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push_str("...");
        // The rest of a long text would otherwise stay allocated for as long as the error is kept.
        text.shrink_to_fit();
    }
    text
}

/// The longest JSON of a list or an object in an error, in bytes: there may be an error for each item of a list.
const MAX_VALUE_BYTES: usize = 2 * 1024;

/// Returns `value` as shown in an error: long strings are truncated, and a long list or object is shown as the beginning of
/// its JSON. Takes time in proportion to the output.
pub(crate) fn truncated(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_TEXT_BYTES => {
            Value::String(format!("{}...", &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]))
        }
        value if is_short(value) => value.clone(),
        value => {
            let mut beginning = Prefix(Vec::new());
            // Fails once the prefix is complete, which ends the serialization.
            let _ = serde_json::to_writer(&mut beginning, value);
            Value::String(format!("{}...", String::from_utf8_lossy(&beginning.0)))
        }
    }
}

/// A writer that keeps the first bytes and then fails.
struct Prefix(Vec<u8>);

impl io::Write for Prefix {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let remaining = MAX_VALUE_BYTES.saturating_sub(self.0.len());
        let fitting = bytes.get(..remaining.min(bytes.len())).unwrap_or_default();
        self.0.extend_from_slice(fitting);
        Ok(fitting.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether a value is short enough to be shown unchanged.
fn is_short(value: &Value) -> bool {
    let mut budget = if value.is_string() { MAX_TEXT_BYTES } else { MAX_VALUE_BYTES };
    fits(value, &mut budget)
}

/// Returns whether the JSON of a value is at most about `budget` bytes long, without writing it.
fn fits(value: &Value, budget: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::Array(_) | Value::Object(_) => 2,
    };
    let Some(rest) = budget.checked_sub(own) else { return false };
    *budget = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, budget)),
        Value::Object(members) => members.iter().all(|(name, member)| {
            *budget = budget.saturating_sub(name.len());
            fits(member, budget)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_values_in_errors_are_truncated() {
        let long = "ä".repeat(MAX_TEXT_BYTES);
        let error = FieldError::new(FieldErrorKind::Invalid, long.clone(), Some(json!(long)), long.clone());
        assert!(error.path.len() < MAX_TEXT_BYTES + 4 && error.detail.len() < MAX_TEXT_BYTES + 4);
        assert!(error.bad_value.unwrap().as_str().unwrap().len() < MAX_TEXT_BYTES + 4);
        let list = json!(vec!["item"; 10_000]);
        assert!(truncated(&list).as_str().unwrap().starts_with("[\"item\",\"item\""));
        assert!(truncated(&list).to_string().len() < 2 * MAX_VALUE_BYTES);
        assert_eq!(truncated(&json!(["a", {"b": 1}])), json!(["a", {"b": 1}]));
    }
}
