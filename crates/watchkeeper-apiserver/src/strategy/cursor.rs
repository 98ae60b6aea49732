//! A cursor into an object: a value with its path.
//!
//! Validation reads objects through a [`Cursor`]. A path is linked to its parent and formatted only for an error, so that
//! checking a valid object allocates nothing.

use serde_json::Value;

use crate::field::{FieldError, FieldErrorKind, truncated};

static NULL: Value = Value::Null;

/// A step from a parent to a member.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Key(&'a str),
    Index(usize),
}

/// A read-only cursor into an object: a value with its path. A location that does not exist has the value null, so that
/// members below it can be read too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    /// The value at the location.
    pub(crate) value: &'a Value,
    parent: Option<&'a Cursor<'a>>,
    step: Step<'a>,
}

impl<'a> Cursor<'a> {
    /// Returns the location of the whole object.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, parent: None, step: Step::Root }
    }

    /// Returns the location of the member `name`, written `.name`.
    pub(crate) fn at<'b>(&'b self, name: &'b str) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor { value: self.value.get(name).unwrap_or(&NULL), parent: Some(self), step: Step::Member(name) }
    }

    /// Returns the location of the key `name` of a user-defined map, written `[name]`.
    pub(crate) fn key<'b>(&'b self, name: &'b str) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor { value: self.value.get(name).unwrap_or(&NULL), parent: Some(self), step: Step::Key(name) }
    }

    /// Returns a location whose path ends with `name` and whose value comes from elsewhere.
    pub(crate) fn named<'b>(&'b self, name: &'b str, value: &'b Value) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor { value, parent: Some(self), step: Step::Member(name) }
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self) -> impl Iterator<Item = Cursor<'_>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(index, value)| Cursor {
            value,
            parent: Some(self),
            step: Step::Index(index),
        })
    }

    /// Returns the entries of a user-defined map.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Cursor<'_>)> {
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), Cursor { value, parent: Some(self), step: Step::Key(name) }))
    }

    /// Returns the string value; empty if absent.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the integer value.
    pub(crate) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Returns whether the value is true.
    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// Returns whether a value is present, possibly an empty one.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns whether the value is absent, or an empty string, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the path, such as `spec.containers[0].name`.
    pub(crate) fn path(&self) -> String {
        let mut path = self.parent.map(Cursor::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Member(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Key(name) => {
                path.push('[');
                path.push_str(name);
                path.push(']');
            }
            Step::Index(index) => {
                path.push('[');
                path.push_str(&index.to_string());
                path.push(']');
            }
        }
        path
    }

    /// Returns an error of `kind` that shows the value.
    pub(crate) fn error(&self, kind: FieldErrorKind, detail: impl Into<String>) -> FieldError {
        FieldError::new(kind, self.path(), Some(truncated(self.value)), detail)
    }

    /// Returns the error for an invalid value.
    pub(crate) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        self.error(FieldErrorKind::Invalid, detail)
    }

    /// Returns the error for a forbidden value or change.
    pub(crate) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Forbidden, self.path(), None, detail)
    }

    /// Returns the error for a missing value.
    pub(crate) fn missing(&self, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Required, self.path(), None, detail)
    }

    /// Returns the error for a duplicate value.
    pub(crate) fn duplicate(&self) -> FieldError {
        self.error(FieldErrorKind::Duplicate, "")
    }

    /// Returns the error for a value that is not one of `allowed`.
    pub(crate) fn unsupported(&self, allowed: &[&str]) -> FieldError {
        let quoted: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        let value = if self.is_set() { truncated(self.value) } else { Value::String(String::new()) };
        FieldError::new(
            FieldErrorKind::NotSupported,
            self.path(),
            Some(value),
            format!("supported values: {}", quoted.join(", ")),
        )
    }
}

/// The errors collected so far.
pub(crate) type Errors = Vec<FieldError>;

/// Runs `check` and reports its errors under the path `to` instead of `from`, where clients expect them.
pub(crate) fn moved(from: &str, to: &str, errors: &mut Errors, check: impl FnOnce(&mut Errors)) {
    let start = errors.len();
    check(errors);
    for error in errors.iter_mut().skip(start) {
        if let Some(rest) = error.path.strip_prefix(from) {
            error.path = format!("{to}{rest}");
        }
    }
}

/// Rules that are independent of the kind. Each adds to `errors` when it is violated.
impl Cursor<'_> {
    /// Requires a value that is not empty. Returns whether the rule is satisfied.
    pub(crate) fn required(&self, errors: &mut Errors) -> bool {
        let is_given = !self.is_empty();
        if !is_given {
            errors.push(self.missing(""));
        }
        is_given
    }

    /// Requires a present value to be one of `allowed`.
    pub(crate) fn one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if !self.is_empty() && !allowed.contains(&self.text()) {
            errors.push(self.unsupported(allowed));
        }
    }

    /// Requires a value that is one of `allowed`.
    pub(crate) fn required_one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if self.required(errors) {
            self.one_of(allowed, errors);
        }
    }

    /// Requires an unchanged value.
    pub(crate) fn immutable(&self, old: &Cursor<'_>, errors: &mut Errors) {
        let both_empty = self.is_empty() && old.is_empty();
        if !both_empty && !super::edit::is_same(self.value, old.value) {
            errors.push(self.invalid("field is immutable"));
        }
    }

    /// Requires a present number to be at least `least`.
    pub(crate) fn at_least(&self, least: i64, errors: &mut Errors) {
        if self.int().is_some_and(|value| value < least) {
            errors.push(self.invalid(format!("must be greater than or equal to {least}")));
        }
    }

    /// Requires a present number to be in the range.
    pub(crate) fn between(&self, least: i64, most: i64, errors: &mut Errors) {
        if self.int().is_some_and(|value| value < least || value > most) {
            errors.push(self.invalid(format!("must be between {least} and {most}, inclusive")));
        }
    }

    /// Requires a present string to have the format.
    pub(crate) fn format(&self, format: super::names::FormatCheck, errors: &mut Errors) {
        if !self.is_empty() {
            errors.extend(format(self.text()).into_iter().map(|detail| self.invalid(detail)));
        }
    }

    /// Requires a string that has the format.
    pub(crate) fn required_format(&self, format: super::names::FormatCheck, errors: &mut Errors) {
        if self.required(errors) {
            self.format(format, errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Cursor;

    #[test]
    fn paths_are_formatted_like_kubernetes_field_paths() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "data": {"a/b": 1}});
        let root = Cursor::root(&object);
        let containers = root.at("spec");
        let containers = containers.at("containers");
        let paths: Vec<String> = containers.items().map(|container| container.at("name").path()).collect();
        assert_eq!(paths, ["spec.containers[0].name", "spec.containers[1].name"]);
        assert_eq!(root.at("data").key("a/b").path(), "data[a/b]");
    }

    #[test]
    fn traversing_absent_members_returns_empty_values() {
        let object = json!(3);
        let root = Cursor::root(&object);
        assert!(root.at("a").at("b").is_empty());
        assert_eq!(root.at("a").items().count(), 0);
    }
}
