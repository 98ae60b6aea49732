//! Namespaces.

use serde_json::{Value, json};

use super::row::{CLUSTER, Row};
use crate::strategy::{
    at::{At, Errors},
    edit::{self, Lit},
    names::{self, NameRule},
};

/// Held until everything in the namespace is gone.
const FINALIZER: &str = "kubernetes";

pub(super) const NAMESPACE: Row = Row {
    names: NameRule::Label,
    delete_returns_object: true,
    status: Some(|| Some(json!({"phase": "Active"}))),
    defaults,
    prepare_create,
    prepare_update: |object, old| edit::take_from(object, old, "spec"),
    prepare_subresource,
    validate,
    validate_status,
    validate_subresource: |_, object, _, errors| validate(object, errors),
    ..CLUSTER
};

fn defaults(object: &mut Value) {
    label(object);
    edit::fill_all(
        object,
        &[("", "spec", Lit::O), ("", "status", Lit::O), ("status", "phase", Lit::S("Active"))],
    );
}

/// Labels a namespace with its name. A generated name is known only after the defaults.
fn label(object: &mut Value) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !name.is_empty()
        && let Some(labels) = edit::object_at(object, &["metadata", "labels"])
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

fn prepare_create(object: &mut Value) {
    label(object);
    let Some(spec) = edit::object(object, "spec") else { return };
    let finalizers = spec.entry("finalizers").or_insert(Value::Null);
    match finalizers {
        Value::Array(names) if names.iter().any(|name| name == FINALIZER) => {}
        Value::Array(names) => names.push(FINALIZER.into()),
        other => *other = json!([FINALIZER]),
    }
}

/// `finalize` is the one place where finalizers of the spec change.
fn prepare_subresource(_name: &str, object: &mut Value, old: &Value) {
    edit::take_from(object, old, "status");
}

fn validate(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let finalizers = spec.at("finalizers");
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        errors.extend(names::qualified(name).into_iter().map(|detail| finalizer.invalid(detail)));
        if !name.contains('/') && !matches!(name, FINALIZER | "orphan" | "foregroundDeletion") {
            errors.push(
                finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"),
            );
        }
    }
}

fn validate_status(object: &At<'_>, _old: &At<'_>, errors: &mut Errors) {
    let metadata = object.at("metadata");
    let status = object.at("status");
    // The path is upstream's, capital letter included.
    let shown = status.at("Phase");
    let phase = status.at("phase");
    let (wanted, detail) = if metadata.at("deletionTimestamp").is_set() {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase.text() != wanted {
        let mut error = shown.invalid(detail);
        error.bad_value = Some(phase.value.clone());
        errors.push(error);
    }
}
