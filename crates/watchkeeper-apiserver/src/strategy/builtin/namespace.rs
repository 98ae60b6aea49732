//! Namespaces.

use serde_json::{Value, json};

use super::row::{CLUSTER, StrategyRow};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit::{self, DefaultValue},
        names::{self, NameRule},
    },
};

/// The finalizer that keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

pub(super) const NAMESPACE: StrategyRow = StrategyRow {
    names: NameRule::Label,
    delete_returns_object: true,
    status: Some(|| Some(json!({"phase": "Active"}))),
    defaults,
    prepare_create,
    prepare_update: |object, old| edit::take_from(object, old, "spec"),
    prepare_subresource,
    // Errors of the object refer to the list, those of `finalize` to the item.
    validate: |object, errors| finalizers(object, false, errors),
    validate_status,
    validate_subresource: |_, object, _, errors| finalizers(object, true, errors),
    ..CLUSTER
};

fn defaults(object: &mut Value) {
    label(object);
    edit::fill_all(
        object,
        &[
            ("", "spec", DefaultValue::EmptyObject),
            ("", "status", DefaultValue::EmptyObject),
            ("status", "phase", DefaultValue::Str("Active")),
        ],
    );
}

/// Sets the name label of a namespace. Not part of the defaults, because names are generated after defaulting.
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

/// Restores everything except `spec.finalizers`, which only `finalize` changes.
fn prepare_subresource(_name: &str, object: &mut Value, old: &Value) {
    edit::take_from(object, old, "status");
}

fn finalizers(object: &Cursor<'_>, names_items: bool, errors: &mut Errors) {
    let spec = object.at("spec");
    let finalizers = spec.at("finalizers");
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        let path = if names_items { finalizer.path() } else { finalizers.path() };
        let mut wrong = names::qualified(name);
        if !name.contains('/') && !matches!(name, FINALIZER | "orphan" | "foregroundDeletion") {
            wrong.push("name is neither a standard finalizer name nor is it fully qualified".to_owned());
        }
        errors.extend(
            wrong.into_iter().map(|detail| {
                FieldError::new(FieldErrorKind::Invalid, path.clone(), Some(name.into()), detail)
            }),
        );
    }
}

fn validate_status(object: &Cursor<'_>, _old: &Cursor<'_>, errors: &mut Errors) {
    let metadata = object.at("metadata");
    let status = object.at("status");
    // The path is that of upstream, including the capital letter.
    let reported = status.at("Phase");
    let phase = status.at("phase");
    let (expected, detail) = if metadata.at("deletionTimestamp").is_set() {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase.text() != expected {
        let mut error = reported.invalid(detail);
        error.bad_value = Some(phase.value.clone());
        errors.push(error);
    }
}
