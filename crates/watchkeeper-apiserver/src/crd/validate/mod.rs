//! Validation of custom objects by their schemas.
//!
//! The errors, their paths and even their duplicates are those of the real server: a number that is not an integer is
//! reported twice, and errors of combined schemas have no path. An unchanged value is not validated again, so that existing
//! objects remain valid under a stricter schema.

mod checker;
mod combination;
mod correlation;
mod embedded;
mod lists;
mod parts;
mod scalar;
mod steps;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::{checker::Checker, steps::Steps};
pub(crate) use self::{correlation::OldItems, embedded::embedded, lists::list_types};
use super::structural::Structural;
use crate::field::{FieldError, FieldErrorKind, MAX_ERRORS};

/// The path of errors without a path.
pub(crate) const NO_PATH: &str = "<nil>";

/// Validates a value by a schema. `base` is the path of the value, empty for a whole object.
///
/// Reports at most [`MAX_ERRORS`] errors. An object is invalid if its validation takes too many steps.
pub(crate) fn validate(
    value: &Value,
    old: Option<&Value>,
    schema: &Structural,
    base: &str,
) -> Vec<FieldError> {
    let steps = Steps::for_value(value);
    let mut checker = Checker::new(base, String::new(), &steps);
    checker.check(value, old, schema);
    let mut errors = checker.errors;
    if steps.are_used_up() {
        let detail =
            "the object is too large for the alternatives and patterns of its schema: validation was stopped";
        errors.truncate(MAX_ERRORS - 1);
        errors.push(FieldError::new(FieldErrorKind::Invalid, NO_PATH, Some("".into()), detail));
    }
    errors
}
