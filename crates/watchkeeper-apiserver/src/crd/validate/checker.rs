//! The walk over a value and its schema.

use serde_json::Value;

use super::{NO_PATH, correlation::OldItems, steps::Steps};
use crate::{
    crd::structural::{Additional, Structural},
    field::{FieldError, FieldErrorKind, MAX_ERRORS, MAX_TEXT_BYTES, truncated},
};

/// The state of a validation.
pub(super) struct Checker<'a> {
    /// The path of the whole value.
    pub(super) base: &'a str,
    path: String,
    /// The errors so far.
    pub(super) errors: Vec<FieldError>,
    /// The number of schemas that were checked. If all alternatives fail, the errors of the one that checked the most are
    /// reported.
    pub(super) matched: usize,
    /// The remaining steps, shared with alternatives.
    pub(super) steps: &'a Steps,
}

impl<'a> Checker<'a> {
    /// Starts a validation at `path` below `base`.
    pub(super) fn new(base: &'a str, path: String, steps: &'a Steps) -> Self {
        Self { base, path, errors: Vec::new(), matched: 0, steps }
    }

    pub(super) fn current_path(&self) -> String {
        self.at(&self.path)
    }

    /// Counts steps. Returns false if the steps or the number of errors exceed the limit.
    pub(super) fn can_continue(&self, steps: u64) -> bool {
        self.steps.take(steps) && self.errors.len() < MAX_ERRORS
    }

    fn at(&self, path: &str) -> String {
        let path = path.trim_start_matches('.');
        // A path that is truncated later is not copied in full for each of many errors.
        let path = &path[..path.floor_char_boundary(MAX_TEXT_BYTES + 1)];
        match (self.base, path) {
            ("", "") => NO_PATH.to_owned(),
            (base, "") => base.to_owned(),
            ("", path) => path.to_owned(),
            (base, path) => format!("{base}.{path}"),
        }
    }

    fn base_path(&self) -> String {
        if self.base.is_empty() { NO_PATH.to_owned() } else { self.base.to_owned() }
    }

    pub(super) fn error(&mut self, kind: FieldErrorKind, value: Value, detail: String) {
        let path = self.current_path();
        self.errors.push(FieldError::new(kind, path, Some(value), detail));
    }

    pub(super) fn invalid(&mut self, value: impl Into<Value>, detail: &str) {
        let detail = format!("{} in body {detail}", self.short_path());
        self.error(FieldErrorKind::Invalid, value.into(), detail);
    }

    /// Returns the path for explanations.
    pub(super) fn short_path(&self) -> &str {
        &self.path[..self.path.floor_char_boundary(MAX_TEXT_BYTES)]
    }

    pub(super) fn error_at_base(&mut self, detail: String) {
        let path = self.base_path();
        self.errors.push(FieldError::new(FieldErrorKind::Invalid, path, Some("".into()), detail));
    }

    fn within(&mut self, step: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        then(self);
        self.path.truncate(length);
    }

    pub(super) fn check(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        if old == Some(value) {
            self.matched += 1;
        } else {
            self.check_changed(value, old, schema);
        }
    }

    /// Validates a value that has changed.
    pub(super) fn check_changed(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        self.matched += 1;
        if !self.can_continue(1) {
            return;
        }
        self.check_type(value, schema);
        if !value.is_null() {
            self.combinations(value, old, schema);
            match value {
                Value::String(text) => self.text(text, schema),
                Value::Number(number) => self.number(number, schema),
                Value::Array(items) => self.list(items, old, schema),
                Value::Object(_) => self.object(value, old, schema),
                Value::Null | Value::Bool(_) => {}
            }
        }
        if let Some(allowed) = schema.allowed.as_ref().filter(|allowed| !allowed.contains(value)) {
            self.error(FieldErrorKind::NotSupported, truncated(value), allowed.text().to_owned());
        }
    }

    fn list(&mut self, items: &[Value], old: Option<&Value>, schema: &Structural) {
        if let Some(of) = &schema.items {
            let olds = OldItems::new(old, &schema.list);
            for (index, item) in items.iter().enumerate() {
                if !self.can_continue(0) {
                    return;
                }
                let before = olds.get(item);
                self.within(&format!("[{index}]"), |checker| checker.check(item, before, of));
            }
        }
        let count = items.len() as u64;
        if let Some(least) = schema.bounds.min_items.filter(|least| count < *least) {
            self.invalid(count, &format!("should have at least {least} items"));
        }
        if let Some(most) = schema.bounds.max_items.filter(|most| count > *most) {
            self.error(FieldErrorKind::TooMany, count.into(), format!("must have at most {most} items"));
        }
    }

    fn object(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        let Some(members) = value.as_object() else { return };
        let count = members.len() as u64;
        if let Some(least) = schema.bounds.min_properties.filter(|least| count < *least) {
            self.invalid(count, &format!("should have at least {least} properties"));
        }
        if let Some(most) = schema.bounds.max_properties.filter(|most| count > *most) {
            self.error(FieldErrorKind::TooMany, count.into(), format!("must have at most {most} items"));
        }
        for (name, member) in members {
            if !self.can_continue(0) {
                return;
            }
            let of = match (schema.properties.get(name), &schema.additional) {
                (Some(property), _) => property,
                (None, Additional::Of(of)) => of,
                (None, _) => continue,
            };
            let before = old.and_then(|old| old.get(name));
            let step = if self.path.is_empty() { name.clone() } else { format!(".{name}") };
            self.within(&step, |checker| checker.check(member, before, of));
        }
        for name in &schema.required {
            if !self.can_continue(1) {
                return;
            }
            if !members.contains_key(name) {
                let path = self.at(&format!("{}.{name}", self.path));
                self.errors.push(FieldError::new(FieldErrorKind::Required, path, None, ""));
            }
        }
    }
}
