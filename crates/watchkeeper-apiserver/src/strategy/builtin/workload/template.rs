//! The pod template of a workload, and the selector that must match it.

use super::super::pod;
use crate::strategy::{
    cursor::{Cursor, Errors},
    metadata,
};

/// The result of matching a selector with a template.
pub(in super::super) enum SelectorMatch {
    /// The selector is malformed.
    Invalid,
    /// The selector matches the pods of the template, or everything.
    Matches,
    /// The selector does not match the pods of the template. An absent selector matches nothing.
    Mismatch,
}

/// Checks a selector, and whether it matches `labels`.
pub(in super::super) fn selector(
    selector: &Cursor<'_>,
    labels: &Cursor<'_>,
    errors: &mut Errors,
) -> SelectorMatch {
    let before = errors.len();
    metadata::label_selector(selector, errors);
    if errors.len() > before {
        SelectorMatch::Invalid
    } else if selector.is_set() && metadata::selects(selector, labels) {
        SelectorMatch::Matches
    } else {
        SelectorMatch::Mismatch
    }
}

pub(super) fn is_empty(selector: &Cursor<'_>) -> bool {
    selector.is_set() && selector.at("matchLabels").is_empty() && selector.at("matchExpressions").is_empty()
}

/// Reports a template whose labels do not match the selector.
pub(in super::super) fn report_mismatch(labels: &Cursor<'_>, errors: &mut Errors) {
    errors.push(labels.invalid("`selector` does not match template `labels`"));
}

/// Checks a required selector and its template. `kind` and `title` name the kind in details.
pub(super) fn selected(spec: &Cursor<'_>, kind: &str, title: &str, errors: &mut Errors) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if !selector.is_set() {
        errors.push(selector.missing(""));
    }
    let own = template.at("metadata");
    let labels = own.at("labels");
    let outcome = self::selector(&selector, &labels, errors);
    if is_empty(&selector) {
        errors.push(selector.invalid(format!("empty selector is invalid for {kind}")));
    }
    match outcome {
        SelectorMatch::Invalid => {
            errors.push(selector.invalid("invalid label selector"));
            return;
        }
        SelectorMatch::Mismatch => report_mismatch(&labels, errors),
        SelectorMatch::Matches => {}
    }
    pod::template(&template, errors);
    always_running(&template, title, errors);
}

/// Rejects templates of pods that terminate.
pub(super) fn always_running(template: &Cursor<'_>, title: &str, errors: &mut Errors) {
    let spec = template.at("spec");
    let policy = spec.at("restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.unsupported(&["Always"]));
    }
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.is_set() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {title} is not Supported")));
    }
}

/// Checks the template of a replication controller, whose selector is a plain map of labels.
pub(super) fn of_replication_controller(spec: &Cursor<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if !template.is_set() {
        errors.push(template.missing(""));
        return;
    }
    let own = template.at("metadata");
    let labels = own.at("labels");
    if !selector.entries().all(|(name, value)| labels.key(name).value == value.value) {
        report_mismatch(&labels, errors);
    }
    pod::template(&template, errors);
    always_running(&template, "ReplicationController", errors);
}
