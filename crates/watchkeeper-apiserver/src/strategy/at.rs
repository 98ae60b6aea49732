//! A place in an object: its value and how to get there.
//!
//! Validation reads objects through [`At`]. Paths are linked back to their parents and written out only when something is
//! wrong, so checking a good object allocates nothing.

use serde_json::Value;

use crate::field::{FieldError, FieldErrorKind, shown};

static NULL: Value = Value::Null;

/// One step from a parent to a member.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Key(&'a str),
    Index(usize),
}

/// A place in an object. A place that does not exist has the value null, so reading on from it is fine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    /// What is there.
    pub(crate) value: &'a Value,
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

impl<'a> At<'a> {
    /// The object itself.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, parent: None, step: Step::Root }
    }

    /// The member `name`, written `.name`.
    pub(crate) fn at<'b>(&'b self, name: &'b str) -> At<'b>
    where
        'a: 'b,
    {
        At { value: self.value.get(name).unwrap_or(&NULL), parent: Some(self), step: Step::Member(name) }
    }

    /// The member `name` of a map of users' making, written `[name]`.
    pub(crate) fn key<'b>(&'b self, name: &'b str) -> At<'b>
    where
        'a: 'b,
    {
        At { value: self.value.get(name).unwrap_or(&NULL), parent: Some(self), step: Step::Key(name) }
    }

    /// A place whose path ends with `name` and whose value is kept elsewhere.
    pub(crate) fn named<'b>(&'b self, name: &'b str, value: &'b Value) -> At<'b>
    where
        'a: 'b,
    {
        At { value, parent: Some(self), step: Step::Member(name) }
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> impl Iterator<Item = At<'_>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(index, value)| At {
            value,
            parent: Some(self),
            step: Step::Index(index),
        })
    }

    /// The members of a map of users' making.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, At<'_>)> {
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), At { value, parent: Some(self), step: Step::Key(name) }))
    }

    /// The text there; empty if there is none.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The whole number there.
    pub(crate) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// True is there.
    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// Something is there, be it empty.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Nothing is there, or an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// The path, as `spec.containers[0].name`.
    pub(crate) fn path(&self) -> String {
        let mut path = self.parent.map(At::path).unwrap_or_default();
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

    /// An error of `kind` here that shows the value.
    pub(crate) fn error(&self, kind: FieldErrorKind, detail: impl Into<String>) -> FieldError {
        FieldError::new(kind, self.path(), Some(shown(self.value)), detail)
    }

    /// The value here is wrong.
    pub(crate) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        self.error(FieldErrorKind::Invalid, detail)
    }

    /// There is a value where there must be none, or a change where there must be none.
    pub(crate) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Forbidden, self.path(), None, detail)
    }

    /// There is no value where there must be one.
    pub(crate) fn missing(&self, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Required, self.path(), None, detail)
    }

    /// The value occurs before.
    pub(crate) fn duplicate(&self) -> FieldError {
        self.error(FieldErrorKind::Duplicate, "")
    }

    /// The value is none of `allowed`.
    pub(crate) fn unsupported(&self, allowed: &[&str]) -> FieldError {
        let quoted: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        let value = if self.is_set() { shown(self.value) } else { Value::String(String::new()) };
        FieldError::new(
            FieldErrorKind::NotSupported,
            self.path(),
            Some(value),
            format!("supported values: {}", quoted.join(", ")),
        )
    }
}

/// What is wrong so far.
pub(crate) type Errors = Vec<FieldError>;

/// Runs `check` and reports its errors under the path `to` instead of `from`, where clients know them.
pub(crate) fn moved(from: &str, to: &str, errors: &mut Errors, check: impl FnOnce(&mut Errors)) {
    let start = errors.len();
    check(errors);
    for error in errors.iter_mut().skip(start) {
        if let Some(rest) = error.path.strip_prefix(from) {
            error.path = format!("{to}{rest}");
        }
    }
}

/// Rules that read the same wherever they hold. Each adds to `errors` when it is broken.
impl At<'_> {
    /// There must be a value that is not empty; answers whether there is.
    pub(crate) fn required(&self, errors: &mut Errors) -> bool {
        let is_given = !self.is_empty();
        if !is_given {
            errors.push(self.missing(""));
        }
        is_given
    }

    /// The value, if there is one, must be one of `allowed`.
    pub(crate) fn one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if !self.is_empty() && !allowed.contains(&self.text()) {
            errors.push(self.unsupported(allowed));
        }
    }

    /// There must be a value, and it must be one of `allowed`.
    pub(crate) fn required_one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if self.required(errors) {
            self.one_of(allowed, errors);
        }
    }

    /// The value must not change.
    pub(crate) fn immutable(&self, old: &At<'_>, errors: &mut Errors) {
        let both_empty = self.is_empty() && old.is_empty();
        if !both_empty && !super::edit::is_same(self.value, old.value) {
            errors.push(self.invalid("field is immutable"));
        }
    }

    /// The number, if there is one, must be at least `least`.
    pub(crate) fn at_least(&self, least: i64, errors: &mut Errors) {
        if self.int().is_some_and(|value| value < least) {
            errors.push(self.invalid(format!("must be greater than or equal to {least}")));
        }
    }

    /// The number, if there is one, must lie in the range.
    pub(crate) fn between(&self, least: i64, most: i64, errors: &mut Errors) {
        if self.int().is_some_and(|value| value < least || value > most) {
            errors.push(self.invalid(format!("must be between {least} and {most}, inclusive")));
        }
    }

    /// The text, if there is one, must have the format.
    pub(crate) fn format(&self, format: super::names::Format, errors: &mut Errors) {
        if !self.is_empty() {
            errors.extend(format(self.text()).into_iter().map(|detail| self.invalid(detail)));
        }
    }

    /// There must be a text, and it must have the format.
    pub(crate) fn required_format(&self, format: super::names::Format, errors: &mut Errors) {
        if self.required(errors) {
            self.format(format, errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::At;

    #[test]
    fn a_path_is_written_as_clients_know_it() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "data": {"a/b": 1}});
        let root = At::root(&object);
        let containers = root.at("spec");
        let containers = containers.at("containers");
        let paths: Vec<String> = containers.items().map(|container| container.at("name").path()).collect();
        assert_eq!(paths, ["spec.containers[0].name", "spec.containers[1].name"]);
        assert_eq!(root.at("data").key("a/b").path(), "data[a/b]");
    }

    #[test]
    fn reading_on_from_what_is_not_there_is_fine() {
        let object = json!(3);
        let root = At::root(&object);
        assert!(root.at("a").at("b").is_empty());
        assert_eq!(root.at("a").items().count(), 0);
    }
}
