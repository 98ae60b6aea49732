//! Pods, and pod templates in other kinds.

mod admission;
mod annotations;
mod container;
mod defaults;
mod env;
mod gates;
mod probe;
mod projected;
mod resize;
mod resources;
mod scheduling;
mod security;
mod status;
#[cfg(test)]
mod tests;
mod update;
mod validate;
mod volume;
mod warnings;

use serde_json::{Value, json};

pub(super) use self::{
    defaults::template_defaults,
    gates::GATED_SPEC,
    resources::resource_name_field,
    validate::{template, template_metadata},
    warnings::template_warnings,
};
use super::row::{PLAIN, StrategyRow};
use crate::strategy::edit;

pub(super) const POD: StrategyRow = StrategyRow {
    delete_returns_object: true,
    generation: &["spec"],
    status: Some(|| Some(json!({"phase": "Pending"}))),
    grace_period_seconds,
    defaults: defaults::pod_defaults,
    prepare_create: admission::prepare_create,
    prepare_update: admission::prepare_update,
    prepare_status,
    prepare_subresource,
    gated: gates::GATED_POD,
    validate: validate::pod,
    validate_create: validate::pod_create,
    validate_update: update::validate_update,
    validate_status: status::validate,
    validate_subresource: update::validate_subresource,
    warnings: warnings::pod_warnings,
    ..PLAIN
};

pub(super) const POD_TEMPLATE: StrategyRow = StrategyRow {
    delete_returns_object: true,
    generation: &["template"],
    gated: &[("template.spec", GATED_SPEC)],
    defaults: |object| {
        edit::object(object, "template");
        if let Some(template) = object.get_mut("template") {
            template_defaults(template);
        }
    },
    validate: |object, errors| template(&object.at("template"), errors),
    warnings: |object, old| template_warnings(&["template"], object, old),
    ..PLAIN
};

/// Returns the grace period. A pod that is not scheduled, or has ended, has none.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a cell of a table of kinds, most of which do not end gracefully"
)]
fn grace_period_seconds(object: &Value) -> Option<u32> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_over = matches!(text("/status/phase"), "Failed" | "Succeeded");
    if is_over || (object.is_object() && text("/spec/nodeName").is_empty()) {
        return Some(0);
    }
    let seconds = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    // A negative period means the shortest one.
    Some(seconds.map_or(30, |seconds| u32::try_from(seconds).unwrap_or(1)))
}

fn prepare_status(object: &mut Value, old: &Value) {
    let Some(old_status) = old.get("status") else { return };
    if let Some(status) = edit::object(object, "status") {
        for member in
            ["qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus", "observedGeneration"]
        {
            if let Some(value) = old_status.get(member) {
                status.entry(member).or_insert_with(|| value.clone());
            }
        }
    }
    if let (Some(metadata), Some(old)) = (object.get_mut("metadata"), old.get("metadata")) {
        edit::take_from(metadata, old, "ownerReferences");
        edit::take_from(metadata, old, "deletionTimestamp");
    }
}

/// Restores everything except the containers for `ephemeralcontainers`, and except the resources for `resize`.
fn prepare_subresource(name: &str, object: &mut Value, old: &Value) {
    let new_spec = object.get("spec").cloned().unwrap_or_default();
    let mut spec = old.get("spec").cloned().unwrap_or_default();
    match name {
        "ephemeralcontainers" => edit::take_from(&mut spec, &new_spec, "ephemeralContainers"),
        "resize" => resize::prepare(&mut spec, &new_spec),
        _ => {}
    }
    edit::take_from(object, old, "status");
    if let Some(members) = object.as_object_mut() {
        members.insert("spec".to_owned(), spec);
    }
}
