//! Validation rules as data.
//!
//! A [`RuleTable`] lists the fields of a type in the order in which upstream checks them, each with its [`Rule`]s. [`check`]
//! walks the table over an object and produces the field errors with path, reason and order. A rule that no variant
//! expresses is a function at its place in the table ([`Rule::Check`]), so that errors have the order of the rows.
//!
//! Paths of rows are relative to the value that the table describes; [`path`](super::path) describes their form.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    cursor::{Cursor, Errors},
    metadata,
    names::{self, FormatCheck},
    path::{PathStep, PathTarget},
    quantity::Quantity,
};
use crate::field::{FieldError, FieldErrorKind};

/// The rules of a type: one row per field, in the order of checking.
pub(crate) type RuleTable = &'static [(&'static str, &'static [Rule])];

/// A rule about the value of one field.
///
/// Rules of a row run in order. A broken [`Required`](Rule::Required), [`RequiredAs`](Rule::RequiredAs) or
/// [`Present`](Rule::Present) ends the row except for [`Immutable`](Rule::Immutable). All other rules ignore a field that
/// is absent or empty unless stated otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// The value must be present and not empty.
    Required,
    /// The value must be present and not empty. The error shows this detail.
    RequiredAs(&'static str),
    /// An optional field must be present, possibly empty. The error shows this detail.
    Present(&'static str),
    /// The field must be absent or empty. The error shows this detail.
    Forbidden(&'static str),
    /// An optional field must be absent; an empty value is forbidden too. The error shows this detail.
    Absent(&'static str),
    /// An optional field must be absent; an empty value is invalid too. The error shows this detail.
    InvalidIfSet(&'static str),
    /// A string must be one of these.
    OneOf(&'static [&'static str]),
    /// A string must be one of these; an absent or empty string is an error too.
    Enum(&'static [&'static str]),
    /// An optional string must be one of these if it is present, even if it is empty.
    EnumIfSet(&'static [&'static str]),
    /// A string must have this format.
    Format(FormatCheck),
    /// A string must have this format, even if it is empty.
    EvenEmpty(FormatCheck),
    /// An optional string must have this format if it is present, even if it is empty.
    FormatIfSet(FormatCheck),
    /// A number must be at least this.
    AtLeast(i64),
    /// A number must be at most this.
    AtMost(i64),
    /// A number must be greater than zero; an absent number counts as zero.
    Positive(&'static str),
    /// A number must be in this inclusive range.
    Between(i64, i64),
    /// A number must be in this inclusive range; an absent number counts as zero.
    InRange(i64, i64),
    /// A port: a number from 1 to 65535 or a port name. An absent port counts as zero.
    PortOrName,
    /// A number that is not negative, or a percentage such as `25%`.
    IntOrPercent,
    /// A percentage must not be more than 100%; numbers are not limited.
    AtMostAll,
    /// A quantity must not be negative.
    QuantityAtLeastZero,
    /// A string must not be longer than this number of bytes.
    MaxLength(usize),
    /// A list or map must not have more members than this.
    MaxItems(usize),
    /// The values of a list of strings or numbers must be unique.
    UniqueItems,
    /// The items of a list must be unique by this member. Items without the member are not compared.
    UniqueBy(&'static str),
    /// Labels: qualified names with short values.
    Labels,
    /// A label selector with `matchLabels` and `matchExpressions`.
    LabelSelector,
    /// The value must not change in an update.
    Immutable,
    /// A nested struct: an absent value is checked as an empty one.
    Struct(RuleTable),
    /// A nested optional type: checked if it is present.
    Pointer(RuleTable),
    /// Rules for the same value that apply under a condition.
    When(FieldCondition, RuleTable),
    /// Any other rule.
    Check(fn(&Cursor<'_>, &mut Errors)),
    /// Any other rule about a change. The second location is the old value.
    CheckChange(fn(&Cursor<'_>, &Cursor<'_>, &mut Errors)),
    /// Any other rule that depends on the old value, which is absent on create.
    CheckWith(fn(&Cursor<'_>, Option<&Cursor<'_>>, &mut Errors)),
}

/// A condition on the members of the value of a row. Members may be paths of plain names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldCondition {
    /// The member is present and not empty.
    Has(&'static str),
    /// The member is absent or empty.
    Lacks(&'static str),
    /// The string value of the member is this.
    Is(&'static str, &'static str),
    /// The string value of the member is different, or absent.
    IsNot(&'static str, &'static str),
    /// The boolean member is true.
    IsTrue(&'static str),
}

impl FieldCondition {
    fn holds(self, at: &Cursor<'_>) -> bool {
        let mut holds = false;
        let mut ask = |path: &str, test: &dyn Fn(&Cursor<'_>) -> bool| {
            visit(at, None, path, &mut |member, _| holds = test(member));
        };
        match self {
            Self::Has(path) => ask(path, &|member| !member.is_empty()),
            Self::Lacks(path) => ask(path, &|member| member.is_empty()),
            Self::Is(path, text) => ask(path, &|member| member.text() == text),
            Self::IsNot(path, text) => ask(path, &|member| member.text() != text),
            Self::IsTrue(path) => ask(path, &|member| member.is_true()),
        }
        holds
    }
}

/// Checks a new value, or one whose rules do not depend on the old value.
pub(crate) fn check(table: RuleTable, at: &Cursor<'_>, errors: &mut Errors) {
    walk(table, at, None, errors);
}

/// Checks a changed value, including the rules about the change.
pub(crate) fn check_change(table: RuleTable, at: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    walk(table, at, Some(old), errors);
}

/// Applies the rules of one row to a new value.
pub(crate) fn check_rules(rules: &[Rule], at: &Cursor<'_>, errors: &mut Errors) {
    for rule in rules {
        if !rule.apply(at, None, errors) {
            break;
        }
    }
}

fn walk(table: RuleTable, at: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    for (path, rules) in table {
        visit(at, old, path, &mut |found, before| {
            let mut is_of_use = true;
            for rule in *rules {
                if is_of_use || matches!(rule, Rule::Immutable) {
                    is_of_use &= rule.apply(found, before, errors);
                }
            }
        });
    }
}

/// Calls `visit_target` with every location that `path` matches, and with the same location in `old`. Items of lists have
/// no old location.
pub(crate) fn visit(
    at: &Cursor<'_>,
    old: Option<&Cursor<'_>>,
    path: &str,
    visit_target: &mut dyn FnMut(&Cursor<'_>, Option<&Cursor<'_>>),
) {
    let Some((step, rest)) = PathStep::first(path) else { return visit_target(at, old) };
    for name in step.names() {
        let member = at.at(name);
        match step.target {
            PathTarget::Items => {
                for item in member.items() {
                    visit(&item, None, rest, visit_target);
                }
            }
            PathTarget::Values => {
                for (_, value) in member.entries() {
                    visit(&value, None, rest, visit_target);
                }
            }
            PathTarget::Member => {
                let before = old.map(|old| old.at(name));
                visit(&member, before.as_ref(), rest, visit_target);
            }
        }
    }
}

impl Rule {
    /// Applies the rule. Returns whether the following rules of the row apply.
    fn apply(self, at: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) -> bool {
        match self {
            Self::Required | Self::RequiredAs(_) => {
                let detail = if let Self::RequiredAs(detail) = self { detail } else { "" };
                if at.is_empty() {
                    errors.push(at.missing(detail));
                    return false;
                }
            }
            Self::Present(detail) => {
                if !at.is_set() {
                    errors.push(at.missing(detail));
                    return false;
                }
            }
            Self::Forbidden(detail) if !at.is_empty() => errors.push(at.forbidden(detail)),
            Self::Absent(detail) if at.is_set() => errors.push(at.forbidden(detail)),
            Self::InvalidIfSet(detail) if at.is_set() => errors.push(at.invalid(detail)),
            Self::OneOf(allowed) => at.one_of(allowed, errors),
            Self::Enum(allowed) => {
                if !allowed.contains(&at.text()) {
                    errors.push(at.unsupported(allowed));
                }
            }
            Self::EnumIfSet(allowed) if at.is_set() => return Self::Enum(allowed).apply(at, old, errors),
            Self::FormatIfSet(format) if at.is_set() => {
                return Self::EvenEmpty(format).apply(at, old, errors);
            }
            Self::Format(format) => at.format(format, errors),
            Self::EvenEmpty(format) => {
                errors.extend(format(at.text()).into_iter().map(|detail| at.invalid(detail)));
            }
            Self::IntOrPercent => int_or_percent(at, errors),
            Self::AtMostAll => {
                if percent(at).is_some_and(|share| share > 100) {
                    errors.push(at.invalid("must not be greater than 100%"));
                }
            }
            Self::PortOrName => port_or_name(at, errors),
            Self::Labels => metadata::labels(at, errors),
            Self::LabelSelector => metadata::label_selector(at, errors),
            Self::Immutable => {
                if let Some(old) = old {
                    at.immutable(old, errors);
                }
            }
            Self::Struct(table) => walk(table, at, old, errors),
            Self::Pointer(table) if at.is_set() => walk(table, at, old, errors),
            Self::When(condition, table) if condition.holds(at) => walk(table, at, old, errors),
            Self::Forbidden(_)
            | Self::Absent(_)
            | Self::InvalidIfSet(_)
            | Self::EnumIfSet(_)
            | Self::FormatIfSet(_)
            | Self::Pointer(_)
            | Self::When(..) => {}
            Self::Check(check) => check(at, errors),
            Self::CheckChange(check) => {
                if let Some(old) = old {
                    check(at, old, errors);
                }
            }
            Self::CheckWith(check) => check(at, old, errors),
            Self::AtLeast(_)
            | Self::AtMost(_)
            | Self::Positive(_)
            | Self::Between(..)
            | Self::InRange(..)
            | Self::QuantityAtLeastZero => self.apply_to_number(at, errors),
            Self::MaxLength(_) | Self::MaxItems(_) | Self::UniqueItems | Self::UniqueBy(_) => {
                self.apply_to_members(at, errors);
            }
        }
        true
    }

    fn apply_to_number(self, at: &Cursor<'_>, errors: &mut Errors) {
        let quantity = || Quantity::from_value(at.value);
        match self {
            Self::AtLeast(least) => at.at_least(least, errors),
            Self::AtMost(most) if at.int().is_some_and(|value| value > most) => {
                errors.push(at.invalid(format!("must be less than or equal to {most}")));
            }
            Self::Positive(detail) if at.int().unwrap_or(0) <= 0 => {
                errors.push(at.invalid(detail));
            }
            Self::Between(least, most) => at.between(least, most, errors),
            Self::InRange(least, most) if !(least..=most).contains(&at.int().unwrap_or(0)) => {
                let detail = format!("must be between {least} and {most}, inclusive");
                let shown = Value::from(at.int().unwrap_or(0));
                errors.push(FieldError::new(FieldErrorKind::Invalid, at.path(), Some(shown), detail));
            }
            Self::QuantityAtLeastZero if quantity().is_some_and(Quantity::is_negative) => {
                errors.push(at.invalid("must be greater than or equal to 0"));
            }
            _ => {}
        }
    }

    fn apply_to_members(self, at: &Cursor<'_>, errors: &mut Errors) {
        match self {
            Self::MaxLength(most) if at.text().len() > most => errors.push(metadata::too_long(at, most)),
            Self::MaxItems(most) => {
                let count = at
                    .value
                    .as_array()
                    .map_or_else(|| at.value.as_object().map_or(0, serde_json::Map::len), Vec::len);
                if count > most {
                    errors.push(too_many(at, most));
                }
            }
            Self::UniqueItems => {
                let mut seen = BTreeSet::new();
                for item in at.items().filter(|item| !seen.insert(item.value.to_string())) {
                    errors.push(item.duplicate());
                }
            }
            Self::UniqueBy(member) => {
                let mut seen = BTreeSet::new();
                for item in at.items() {
                    let key = item.at(member);
                    if !key.is_empty() && !seen.insert(key.value.to_string()) {
                        errors.push(key.duplicate());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the error for a list or map with more than `most` members.
pub(crate) fn too_many(at: &Cursor<'_>, most: usize) -> FieldError {
    let detail = format!("must have at most {most} items");
    FieldError::new(FieldErrorKind::TooMany, at.path(), None, detail)
}

/// Returns whether a list contains `*`.
pub(crate) fn has_wildcard(list: &Cursor<'_>) -> bool {
    list.items().any(|item| item.text() == "*")
}

/// Checks that a wildcard is the only entry of a list. `items` names the entries in the error.
pub(crate) fn only_wildcard(list: &Cursor<'_>, items: &str, errors: &mut Errors) {
    if has_wildcard(list) && list.items().count() > 1 {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {items}")));
    }
}

/// Parses a percentage such as `25%`. Returns none for anything else.
fn percent(at: &Cursor<'_>) -> Option<i64> {
    let digits = at.value.as_str()?.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// Returns the number or the percentage at a location; zero for anything else.
pub(crate) fn number_or_percent(at: &Cursor<'_>) -> i64 {
    at.int().or_else(|| percent(at)).or_else(|| at.text().parse().ok()).unwrap_or(0)
}

fn int_or_percent(at: &Cursor<'_>, errors: &mut Errors) {
    at.at_least(0, errors);
    if at.value.is_string() && percent(at).is_none() {
        errors.push(at.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ));
    }
}

/// Checks a port given by number or by name. An absent port counts as zero.
pub(crate) fn port_or_name(at: &Cursor<'_>, errors: &mut Errors) {
    if at.value.is_string() {
        errors.extend(names::port_name(at.text()).into_iter().map(|detail| at.invalid(detail)));
    } else if !at.int().is_some_and(|number| (1..=65535).contains(&number)) {
        errors.push(at.invalid("must be between 1 and 65535, inclusive"));
    }
}
