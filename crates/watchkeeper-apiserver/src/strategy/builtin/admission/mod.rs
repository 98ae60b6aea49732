//! Admission webhooks and policies.

mod policy;
mod rule;
mod webhook;

use serde_json::Value;

use super::row::StrategyRow;
use crate::strategy::cursor::{Cursor, Errors};

/// Returns the row of a kind of the group `admissionregistration.k8s.io`.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "ValidatingWebhookConfiguration" => webhook::VALIDATING,
        "MutatingWebhookConfiguration" => webhook::MUTATING,
        "ValidatingAdmissionPolicy" => policy::VALIDATING,
        "ValidatingAdmissionPolicyBinding" => policy::VALIDATING_BINDING,
        "MutatingAdmissionPolicy" => policy::MUTATING,
        "MutatingAdmissionPolicyBinding" => policy::MUTATING_BINDING,
        _ => return None,
    })
}

/// The suffix of the names of configurations that a server reads from files.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Rejects a new object with a name that is reserved for configurations from files.
fn not_static(object: &Cursor<'_>, errors: &mut Errors) {
    let metadata = object.at("metadata");
    let name = metadata.at("name");
    if name.text().ends_with(STATIC_SUFFIX) {
        errors.push(name.invalid(static_detail()));
    }
}

fn static_detail() -> String {
    format!(
        "names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed via the API"
    )
}

/// Returns the warning about a changed object with a reserved name.
fn static_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if old.is_some() && name.ends_with(STATIC_SUFFIX) {
        return vec![format!("metadata.name: {}", static_detail())];
    }
    Vec::new()
}
