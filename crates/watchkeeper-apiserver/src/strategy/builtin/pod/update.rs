//! Which changes of a pod are taken.

use serde_json::Value;

use super::annotations;
use crate::strategy::{
    at::{At, Errors},
    edit,
};

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Members that may change, each by rules of its own.
const MUTABLE: [&str; 3] = ["activeDeadlineSeconds", "tolerations", "schedulingGates"];

pub(super) fn validate_update(object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (metadata, old_metadata) = (object.at("metadata"), old.at("metadata"));
    annotations::check_change(&metadata.at("annotations"), &old_metadata.at("annotations"), errors);
    let (spec, old) = (object.at("spec"), old.at("spec"));
    for list in ["containers", "initContainers"] {
        let (new, old) = (spec.at(list), old.at(list));
        if new.items().count() != old.items().count() {
            errors.push(new.forbidden("pod updates may not add or remove containers"));
            return;
        }
    }
    deadline(&spec, &old, errors);
    only_added_tolerations(&spec, &old, errors);
    let gates = spec.at("schedulingGates");
    let old_gates = old.at("schedulingGates");
    for gate in gates.items() {
        if !old_gates.items().any(|old| old.value == gate.value) {
            errors.push(gate.forbidden("only deletion is allowed, but found new scheduling gate"));
        }
    }
    // Most updates leave the spec alone; what follows copies it three times.
    if spec.value == old.value {
        return;
    }
    let mut allowed = spec.value.clone();
    munge(&mut allowed, old.value, !old_gates.is_empty());
    if without_empty(&allowed) != without_empty(old.value) {
        errors.push(spec.forbidden(UPDATABLE));
    }
}

/// Undoes the changes that are allowed.
fn munge(spec: &mut Value, old: &Value, is_gated: bool) {
    for list in ["containers", "initContainers"] {
        let olds = old.get(list).and_then(Value::as_array);
        let news = spec.get_mut(list).and_then(Value::as_array_mut);
        for (new, old) in news.into_iter().flatten().zip(olds.into_iter().flatten()) {
            edit::take_from(new, old, "image");
        }
    }
    for member in MUTABLE {
        edit::take_from(spec, old, member);
    }
    if is_gated {
        edit::take_from(spec, old, "nodeSelector");
        edit::take_from(spec, old, "affinity");
    }
    let was_negative =
        old.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0);
    if was_negative && spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64) == Some(1) {
        edit::take_from(spec, old, "terminationGracePeriodSeconds");
    }
}

/// Members that say nothing are the same as no members.
fn without_empty(value: &Value) -> Value {
    let Some(members) = value.as_object() else { return value.clone() };
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    members
        .iter()
        .filter(|(_, value)| says_something(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn deadline(spec: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (new, old) = (spec.at("activeDeadlineSeconds"), old.at("activeDeadlineSeconds"));
    match (new.int(), old.int()) {
        (Some(new_seconds), Some(old_seconds)) if new_seconds > old_seconds => {
            errors.push(new.invalid("must be less than or equal to previous value"));
        }
        (None, Some(_)) => {
            errors.push(new.invalid("must not update from a positive integer to nil value"));
        }
        _ => {}
    }
}

/// A toleration stays, but may last longer or shorter.
fn only_added_tolerations(spec: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let tolerations = spec.at("tolerations");
    for old in old.at("tolerations").items() {
        let wanted = without_seconds(old.value);
        if !tolerations.items().any(|new| without_seconds(new.value) == wanted) {
            errors.push(
                tolerations.forbidden("existing toleration can not be modified except its tolerationSeconds"),
            );
            return;
        }
    }
}

pub(super) fn validate_subresource(name: &str, object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    super::validate::pod(object, errors);
    if name == "ephemeralcontainers" {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let new = spec.at("ephemeralContainers");
        for old in old.at("ephemeralContainers").items() {
            let same = new.items().find(|new| new.at("name").value == old.at("name").value);
            if same.is_none_or(|same| same.value != old.value) {
                let name = old.at("name").text();
                errors.push(
                    new.forbidden(format!("existing ephemeral containers {name:?} may not be changed\n")),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{At, validate_update};

    fn pod(spec: &Value) -> Value {
        let mut pod =
            json!({"spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "a"}]}});
        for (name, value) in spec.as_object().unwrap() {
            pod["spec"][name] = value.clone();
        }
        pod
    }

    #[test]
    fn a_pod_changes_in_few_ways() {
        let gated = json!({"schedulingGates": [{"name": "g"}]});
        let table = [
            (json!({}), json!({}), true),
            (json!({}), json!({"containers": [{"name": "c", "image": "other"}]}), true),
            (json!({}), json!({"containers": [{"name": "d", "image": "i"}]}), false),
            (json!({}), json!({"containers": []}), false),
            (json!({}), json!({"nodeName": "n"}), false),
            (json!({}), json!({"activeDeadlineSeconds": 5}), true),
            (json!({"activeDeadlineSeconds": 5}), json!({"activeDeadlineSeconds": 6}), false),
            (json!({"activeDeadlineSeconds": 5}), json!({}), false),
            (json!({}), json!({"tolerations": [{"key": "a"}, {"key": "b"}]}), true),
            (json!({}), json!({"tolerations": [{"key": "a", "tolerationSeconds": 4}]}), true),
            (json!({}), json!({"tolerations": [{"key": "b"}]}), false),
            (json!({}), gated.clone(), false),
            (gated.clone(), json!({}), true),
            (gated, json!({"nodeSelector": {"a": "b"}}), true),
            (json!({"terminationGracePeriodSeconds": -3}), json!({"terminationGracePeriodSeconds": 1}), true),
            (json!({}), json!({"nodeSelector": {"a": "b"}}), false),
        ];
        for (old, new, is_taken) in table {
            let mut errors = Vec::new();
            validate_update(&At::root(&pod(&new)), &At::root(&pod(&old)), &mut errors);
            assert_eq!(errors.is_empty(), is_taken, "{old} -> {new}: {errors:?}");
        }
    }
}
