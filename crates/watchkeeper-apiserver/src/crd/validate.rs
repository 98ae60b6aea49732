//! Validation of a custom object by its schema.
//!
//! The errors, their paths and even their duplicates are those of the real server: a number that is not an integer is
//! reported twice, and errors of combined schemas have no path. An unchanged value is not validated again, so that existing
//! objects remain valid under a stricter schema.

use std::{cell::Cell, collections::HashMap};

use serde_json::{Number, Value};

use super::{
    format::Format,
    structural::{Additional, ListType, Structural, Ty},
};
use crate::field::{FieldError, FieldErrorKind, MAX_ERRORS, MAX_TEXT_BYTES, shown};

/// The path of errors without a path.
pub(crate) const NO_PATH: &str = "<nil>";

/// The base number of steps for the validation of any object. Alternatives multiply with the items they are tried on, and
/// patterns with the length of texts, so a small schema and a small object together can cause hours of work.
const BASE_STEPS: u64 = 200_000;

/// The additional steps for each value of an object.
const STEPS_PER_VALUE: u64 = 20;

/// The maximum number of steps for any object.
const MAX_STEPS: u64 = 8_000_000;

/// Returns the maximum number of steps for the validation of `value`: a number for each value and for each byte of text.
fn steps_for(value: &Value) -> u64 {
    fn own(value: &Value) -> u64 {
        STEPS_PER_VALUE
            + match value {
                Value::String(text) => text.len() as u64,
                Value::Array(items) => items.iter().map(own).sum(),
                Value::Object(members) => members.values().map(own).sum(),
                Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            }
    }
    MAX_STEPS.min(BASE_STEPS + own(value))
}

/// The bytes of a text that count as one step.
const BYTES_PER_STEP: u64 = 64;

/// Validates a value by a schema. `base` is the path of the value, empty for a whole object.
///
/// Reports at most [`MAX_ERRORS`] errors. An object is invalid if its validation takes too many steps.
pub(crate) fn validate(
    value: &Value,
    old: Option<&Value>,
    schema: &Structural,
    base: &str,
) -> Vec<FieldError> {
    let steps = Cell::new(steps_for(value));
    let mut checker = Checker { base, path: String::new(), errors: Vec::new(), matched: 0, steps: &steps };
    checker.check(value, old, schema);
    let mut errors = checker.errors;
    if steps.get() == 0 {
        let detail =
            "the object is too large for the alternatives and patterns of its schema: validation was stopped";
        errors.truncate(MAX_ERRORS - 1);
        errors.push(FieldError::new(FieldErrorKind::Invalid, NO_PATH, Some("".into()), detail));
    }
    errors
}

struct Checker<'a> {
    base: &'a str,
    path: String,
    errors: Vec<FieldError>,
    /// The number of schemas that were checked. If all alternatives fail, the errors of the one that checked the most are
    /// reported.
    matched: usize,
    /// The remaining steps, shared with alternatives.
    steps: &'a Cell<u64>,
}

impl Checker<'_> {
    fn here(&self) -> String {
        self.at(&self.path)
    }

    /// Counts steps. Returns false if the steps or the number of errors exceed the limit.
    fn may_go_on(&self, steps: u64) -> bool {
        self.steps.set(self.steps.get().saturating_sub(steps));
        self.steps.get() > 0 && self.errors.len() < MAX_ERRORS
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

    fn nowhere(&self) -> String {
        if self.base.is_empty() { NO_PATH.to_owned() } else { self.base.to_owned() }
    }

    fn error(&mut self, kind: FieldErrorKind, value: Value, detail: String) {
        let path = self.here();
        self.errors.push(FieldError::new(kind, path, Some(value), detail));
    }

    fn invalid(&mut self, value: impl Into<Value>, detail: &str) {
        let detail = format!("{} in body {detail}", self.short_path());
        self.error(FieldErrorKind::Invalid, value.into(), detail);
    }

    /// Returns the path for explanations.
    fn short_path(&self) -> &str {
        &self.path[..self.path.floor_char_boundary(MAX_TEXT_BYTES)]
    }

    fn unplaced(&mut self, detail: String) {
        let path = self.nowhere();
        self.errors.push(FieldError::new(FieldErrorKind::Invalid, path, Some("".into()), detail));
    }

    fn within(&mut self, step: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        then(self);
        self.path.truncate(length);
    }

    fn check(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        if old == Some(value) {
            self.matched += 1;
        } else {
            self.check_changed(value, old, schema);
        }
    }

    /// Validates a value that has changed.
    fn check_changed(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        self.matched += 1;
        if !self.may_go_on(1) {
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
            self.error(FieldErrorKind::NotSupported, shown(value), allowed.text().to_owned());
        }
    }

    fn check_type(&mut self, value: &Value, schema: &Structural) {
        let (fits, wanted) = match (schema.ty, schema.is_int_or_string) {
            (_, true) => (is_integer(value) || value.is_string(), "integer,string"),
            (None, false) => return,
            (Some(ty), false) => (has_type(value, ty), ty.name()),
        };
        if fits || (value.is_null() && schema.is_nullable) {
            return;
        }
        let given = type_name(value);
        let detail = format!("{} in body must be of type {wanted}: {given:?}", self.short_path());
        self.error(FieldErrorKind::TypeInvalid, given.into(), detail);
    }

    fn text(&mut self, text: &str, schema: &Structural) {
        if !self.may_go_on(text.len() as u64 / BYTES_PER_STEP)
            || !schema.pattern.as_ref().is_none_or(|pattern| self.may_go_on(pattern.steps(text)))
        {
            return;
        }
        let length = text.chars().count() as u64;
        // Only the first violated limit is reported.
        if let Some(most) = schema.bounds.max_length.filter(|most| length > *most) {
            let path = self.here();
            let detail = format!("may not be more than {most} bytes");
            self.errors.push(FieldError::new(FieldErrorKind::TooLong, path, None, detail));
        } else if let Some(least) = schema.bounds.min_length.filter(|least| length < *least) {
            self.invalid(text, &format!("should be at least {least} chars long"));
        } else if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            self.invalid(text, &format!("should match '{pattern}'"));
        }
        if let Some(Format::Text(check)) = schema.format
            && !check(text)
        {
            let name = &schema.format_name;
            let detail = format!("{} in body must be of type {name}: {text:?}", self.short_path());
            self.error(FieldErrorKind::TypeInvalid, text.into(), detail);
        }
    }

    fn number(&mut self, number: &Number, schema: &Structural) {
        let value = number.as_f64().unwrap_or(f64::NAN);
        if schema.ty == Some(Ty::Integer) {
            let whole =
                number.as_i64().or_else(|| (value.fract() == 0.0 && value.abs() < 9.2e18).then_some(0));
            let wrong = match (whole, schema.format) {
                (None, _) => Some("(default format)".to_owned()),
                (Some(_), Some(Format::Int32))
                    if value.abs() > 2_147_483_648.0 || value.to_bits() == 2_147_483_648_f64.to_bits() =>
                {
                    Some("with format int32".to_owned())
                }
                _ => None,
            };
            if let Some(format) = wrong {
                let detail =
                    format!("Checked value must be of type integer {format} in {}", self.short_path());
                self.unplaced(detail);
            }
        }
        let bounds = &schema.bounds;
        if let Some(of) = bounds.multiple_of.filter(|of| *of > 0.0) {
            let share = value / of;
            if (share - share.round()).abs() > f64::EPSILON * share.abs().max(1.0) {
                self.invalid(number.clone(), &format!("should be a multiple of {}", plain(of)));
            }
        }
        if let Some(most) = bounds.maximum {
            if bounds.excludes_maximum && value >= most {
                self.invalid(number.clone(), &format!("should be less than {}", plain(most)));
            } else if value > most {
                self.invalid(number.clone(), &format!("should be less than or equal to {}", plain(most)));
            }
        }
        if let Some(least) = bounds.minimum {
            if bounds.excludes_minimum && value <= least {
                self.invalid(number.clone(), &format!("should be greater than {}", plain(least)));
            } else if value < least {
                self.invalid(number.clone(), &format!("should be greater than or equal to {}", plain(least)));
            }
        }
    }

    fn list(&mut self, items: &[Value], old: Option<&Value>, schema: &Structural) {
        if let Some(of) = &schema.items {
            let olds = Correlation::new(old, schema);
            for (index, item) in items.iter().enumerate() {
                if !self.may_go_on(0) {
                    return;
                }
                let before = olds.of(item);
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
            if !self.may_go_on(0) {
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
            if !self.may_go_on(1) {
                return;
            }
            if !members.contains_key(name) {
                let path = self.at(&format!("{}.{name}", self.path));
                self.errors.push(FieldError::new(FieldErrorKind::Required, path, None, ""));
            }
        }
    }

    /// Tries a schema without reporting errors.
    fn attempt(&self, value: &Value, old: Option<&Value>, schema: &Structural) -> (Vec<FieldError>, usize) {
        // The path is used only in errors, where it is truncated.
        let path = self.short_path().to_owned();
        let mut checker =
            Checker { base: self.base, path, errors: Vec::new(), matched: 0, steps: self.steps };
        // The value has changed, so it is validated.
        checker.check_changed(value, old, schema);
        (checker.errors, checker.matched)
    }

    fn combinations(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        let is_int_or_string = schema.is_int_or_string && schema.any_of.len() == 2;
        if !schema.any_of.is_empty() && !is_int_or_string {
            let results: Vec<_> = schema.any_of.iter().map(|of| self.attempt(value, old, of)).collect();
            if results.iter().all(|(errors, _)| !errors.is_empty()) {
                self.unplaced(format!("\"{}\" must validate at least one schema (anyOf)", self.short_path()));
                self.errors.extend(best(results));
            }
        }
        if !schema.one_of.is_empty() {
            let results: Vec<_> = schema.one_of.iter().map(|of| self.attempt(value, old, of)).collect();
            match results.iter().filter(|(errors, _)| errors.is_empty()).count() {
                1 => {}
                0 => {
                    self.unplaced(format!(
                        "\"{}\" must validate one and only one schema (oneOf). Found none valid",
                        self.short_path()
                    ));
                    self.errors.extend(best(results));
                }
                count => self.unplaced(format!(
                    "\"{}\" must validate one and only one schema (oneOf). Found {count} valid alternatives",
                    self.short_path()
                )),
            }
        }
        if !schema.all_of.is_empty() {
            let mut failed = 0;
            for of in &schema.all_of {
                let (errors, _) = self.attempt(value, old, of);
                failed += usize::from(!errors.is_empty());
                self.errors.extend(errors);
            }
            if failed > 0 {
                let none = if failed == schema.all_of.len() { ". None validated" } else { "" };
                self.unplaced(format!(
                    "\"{}\" must validate all the schemas (allOf){none}",
                    self.short_path()
                ));
            }
        }
        if let Some(not) = &schema.not
            && self.attempt(value, old, not).0.is_empty()
        {
            self.unplaced(format!("\"{}\" must not validate the schema (not)", self.short_path()));
        }
    }
}

/// Returns the errors of the alternative that checked the most schemas.
fn best(results: Vec<(Vec<FieldError>, usize)>) -> Vec<FieldError> {
    let mut best: Option<(Vec<FieldError>, usize)> = None;
    for result in results {
        if best.as_ref().is_none_or(|(_, matched)| result.1 > *matched) {
            best = Some(result);
        }
    }
    best.map(|(errors, _)| errors).unwrap_or_default()
}

/// The items of a list before a change, by the values of their keys.
pub(crate) struct Correlation<'a> {
    keys: &'a [String],
    items: HashMap<Identity<'a>, &'a Value>,
}

/// The values of the keys of an item.
type Identity<'a> = Vec<Option<&'a Value>>;

fn identity<'a>(item: &'a Value, keys: &[String]) -> Identity<'a> {
    keys.iter().map(|key| item.get(key)).collect()
}

impl<'a> Correlation<'a> {
    /// Indexes the list `old`. Items of lists that are not maps have no identity.
    pub(crate) fn new(old: Option<&'a Value>, schema: &'a Structural) -> Self {
        let mut correlation = Self { keys: &[], items: HashMap::new() };
        if let (ListType::Map(keys), Some(Value::Array(olds))) = (&schema.list, old) {
            correlation.keys = keys;
            for old in olds {
                correlation.items.entry(identity(old, keys)).or_insert(old);
            }
        }
        correlation
    }

    /// Returns the old value of `item`.
    pub(crate) fn of(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() { None } else { self.items.get(&identity(item, self.keys)).copied() }
    }
}

fn is_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
        }
        _ => false,
    }
}

fn has_type(value: &Value, ty: Ty) -> bool {
    match ty {
        Ty::Object => value.is_object(),
        Ty::Array => value.is_array(),
        Ty::String => value.is_string(),
        Ty::Integer => is_integer(value),
        Ty::Number => value.is_number(),
        Ty::Boolean => value.is_boolean(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Formats a number without a fraction of zero: `10` instead of `10.0`.
fn plain(number: f64) -> String {
    number.to_string()
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
    let path = &path[..path.floor_char_boundary(MAX_TEXT_BYTES)];
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(_, member)| has_parts(member)) {
                if let Some(property) = schema.properties.get(name) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    list_types(member, property, &path, errors);
                } else if let Additional::Of(of) = &schema.additional {
                    list_types(member, of, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                ListType::Atomic => {}
                ListType::Set => repeated(items.iter().map(|item| vec![Some(item)]), |index| {
                    let path = format!("{path}[{index}]");
                    let item = items.get(index).map(shown);
                    errors.push(FieldError::new(FieldErrorKind::Duplicate, path, item, ""));
                    errors.len() < MAX_ERRORS
                }),
                ListType::Map(keys) => {
                    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                        let path = format!("{path}[{index}]");
                        let detail = "must be an object for an array of list-type map";
                        let item = items.get(index).map(shown);
                        errors.push(FieldError::new(FieldErrorKind::Invalid, path, item, detail));
                    } else {
                        repeated(items.iter().map(|item| identity(item, keys)), |index| {
                            let path = format!("{path}[{index}]");
                            let given =
                                |key: &String| Some((key.clone(), items.get(index)?.get(key)?.clone()));
                            let item = keys.iter().filter_map(given).collect();
                            errors.push(FieldError::new(FieldErrorKind::Duplicate, path, Some(item), ""));
                            errors.len() < MAX_ERRORS
                        });
                    }
                }
            }
            if let Some(of) = &schema.items {
                for (index, item) in items.iter().enumerate().filter(|(_, item)| has_parts(item)) {
                    list_types(item, of, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn has_parts(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Reports embedded resources without apiVersion or kind.
pub(crate) fn embedded(value: &Value, schema: &Structural, path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    let path = &path[..path.floor_char_boundary(MAX_TEXT_BYTES)];
    match value {
        Value::Object(members) => {
            if schema.is_embedded {
                for name in ["apiVersion", "kind"] {
                    let is_given =
                        members.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
                    if !is_given {
                        errors.push(FieldError::new(
                            FieldErrorKind::Required,
                            format!("{path}.{name}"),
                            None,
                            "must not be empty",
                        ));
                    }
                }
            }
            for (name, member) in members.iter().filter(|(_, member)| has_parts(member)) {
                if let Some(property) = schema.properties.get(name) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    embedded(member, property, &path, errors);
                } else if let Additional::Of(of) = &schema.additional {
                    embedded(member, of, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = &schema.items {
                for (index, item) in items.iter().enumerate().filter(|(_, item)| has_parts(item)) {
                    embedded(item, of, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Structural, list_types, validate};

    fn wrong(properties: &Value, spec: &Value) -> Vec<(String, &'static str)> {
        let schema = Structural::read(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
        );
        let object = json!({"spec": spec});
        let mut errors = validate(&object, None, &schema, "");
        list_types(&object, &schema, "", &mut errors);
        let mut found: Vec<_> = errors.into_iter().map(|error| (error.path, error.kind.reason())).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn each_keyword_finds_what_it_is_for() {
        const INVALID: &str = "FieldValueInvalid";
        const KIND: &str = "FieldValueTypeInvalid";
        const MISSING: &str = "FieldValueRequired";
        type Row = (Value, Value, &'static [(&'static str, &'static str)]);
        let table: &[Row] = &[
            (json!({"type": "string", "minLength": 2}), json!("A"), &[("spec.x", INVALID)]),
            (
                json!({"type": "string", "maxLength": 2, "pattern": "^z"}),
                json!("abc"),
                &[("spec.x", "FieldValueTooLong")],
            ),
            (json!({"type": "string", "pattern": "^z"}), json!("abc"), &[("spec.x", INVALID)]),
            (json!({"type": "string", "pattern": "^a"}), json!("abc"), &[]),
            (json!({"type": "integer", "multipleOf": 2}), json!(3), &[("spec.x", INVALID)]),
            (
                json!({"type": "integer", "multipleOf": 2}),
                json!(1.5),
                &[("<nil>", INVALID), ("spec.x", INVALID), ("spec.x", KIND)],
            ),
            (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), &[]),
            (json!({"type": "integer"}), json!("1"), &[("spec.x", KIND)]),
            (json!({"type": "integer"}), json!(2.0), &[]),
            (json!({"type": "integer", "format": "int32"}), json!(3_000_000_000_i64), &[("<nil>", INVALID)]),
            (
                json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
                json!(3),
                &[("spec.x", INVALID)],
            ),
            (json!({"type": "integer", "minimum": 3}), json!(3), &[]),
            (json!({"type": "string", "enum": ["A"]}), json!("B"), &[("spec.x", "FieldValueNotSupported")]),
            (
                json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
                json!([]),
                &[("spec.x", INVALID)],
            ),
            (
                json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
                json!(["a", 2]),
                &[("spec.x", "FieldValueTooMany"), ("spec.x[1]", KIND)],
            ),
            (json!({"type": "object", "required": ["y"]}), json!({}), &[("spec.x.y", MISSING)]),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
                json!({"k": "x"}),
                &[("spec.x.k", KIND)],
            ),
            (json!({"x-kubernetes-int-or-string": true}), json!(true), &[("spec.x", KIND)]),
            (json!({"x-kubernetes-int-or-string": true}), json!("5%"), &[]),
            (json!({"type": "string", "format": "ipv4"}), json!("x"), &[("spec.x", KIND)]),
            (json!({"type": "string", "nullable": true}), json!(null), &[]),
            (json!({"type": "string"}), json!(null), &[("spec.x", KIND)]),
            (
                json!({"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "b$"}]}),
                json!("ab"),
                &[("<nil>", INVALID)],
            ),
            (
                json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "b$"}]}),
                json!("x"),
                &[("<nil>", INVALID), ("spec.x", INVALID)],
            ),
            (json!({"type": "string", "not": {"pattern": "^a"}}), json!("ab"), &[("<nil>", INVALID)]),
            (json!({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}), json!("ab"), &[]),
            (
                json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
                json!(["a", "a"]),
                &[("spec.x[1]", "FieldValueDuplicate")],
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
                json!([{"k": "a"}, {"k": "b"}, {"k": "a"}]),
                &[("spec.x[2]", "FieldValueDuplicate")],
            ),
        ];
        for (schema, value, wanted) in table {
            let wanted: Vec<(String, &str)> =
                wanted.iter().map(|(path, reason)| ((*path).to_owned(), *reason)).collect();
            assert_eq!(wrong(&json!({"x": schema}), &json!({"x": value})), wanted, "{schema} {value}");
        }
    }

    #[test]
    fn what_did_not_change_outlives_a_stricter_schema() {
        let schema = Structural::read(&json!({"type": "object", "properties": {
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "minimum": 5}}}}}}));
        let old = json!({"l": [{"k": "a", "n": 1}, {"k": "b", "n": 9}]});
        let moved = json!({"l": [{"k": "b", "n": 8}, {"k": "a", "n": 1}]});
        assert_eq!(validate(&moved, Some(&old), &schema, ""), []);
        let worse = json!({"l": [{"k": "a", "n": 2}]});
        assert_eq!(validate(&worse, Some(&old), &schema, "")[0].path, "l[0].n");
    }
}
