//! Conditions in the common form of the API (`metav1.Condition`).

use std::collections::BTreeSet;

use crate::strategy::{
    cursor::{Cursor, Errors},
    names,
    table::{self, Rule, RuleTable},
};

const CONDITION: RuleTable = &[
    ("type", &[Rule::RequiredAs("is required"), Rule::Format(names::qualified)]),
    ("status", &[Rule::Required, Rule::OneOf(&["False", "True", "Unknown"])]),
    ("observedGeneration", &[Rule::AtLeast(0)]),
    ("lastTransitionTime", &[Rule::Present("")]),
    ("reason", &[Rule::Required, Rule::Format(names::condition_reason), Rule::MaxLength(1024)]),
    ("message", &[Rule::MaxLength(32 * 1024)]),
];

/// Checks a list of conditions. Types must be unique.
pub(super) fn conditions(conditions: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let kind = condition.at("type");
        if !seen.insert(kind.text().to_owned()) {
            let mut error = condition.duplicate();
            error.bad_value = Some(kind.text().into());
            errors.push(error);
        }
        table::check(CONDITION, &condition, errors);
    }
}

/// Returns whether the condition `kind` is true in a list of conditions.
pub(super) fn is_true(conditions: &Cursor<'_>, kind: &str) -> bool {
    conditions
        .items()
        .any(|condition| condition.at("type").text() == kind && condition.at("status").text() == "True")
}
