//! A limit on the work of one validation.

use std::cell::Cell;

use serde_json::Value;

/// The base number of steps for the validation of any object. Alternatives multiply with the items they are tried on, and
/// patterns with the length of texts, so a small schema and a small object together can cause hours of work.
const BASE_STEPS: u64 = 200_000;

/// The additional steps for each value of an object.
const STEPS_PER_VALUE: u64 = 20;

/// The maximum number of steps for any object.
const MAX_STEPS: u64 = 8_000_000;

/// The steps that a validation has left, shared by all alternatives that are tried.
pub(super) struct Steps(Cell<u64>);

impl Steps {
    /// Returns the steps for `value`: a number for each value and for each byte of text.
    pub(super) fn for_value(value: &Value) -> Self {
        Self(Cell::new(MAX_STEPS.min(BASE_STEPS + steps_of(value))))
    }

    /// Counts work. Returns whether steps are left.
    pub(super) fn take(&self, steps: u64) -> bool {
        self.0.set(self.0.get().saturating_sub(steps));
        !self.are_used_up()
    }

    /// Returns whether the validation took too many steps.
    pub(super) fn are_used_up(&self) -> bool {
        self.0.get() == 0
    }
}

fn steps_of(value: &Value) -> u64 {
    STEPS_PER_VALUE
        + match value {
            Value::String(text) => text.len() as u64,
            Value::Array(items) => items.iter().map(steps_of).sum(),
            Value::Object(members) => members.values().map(steps_of).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
