//! The permitted changes of a pod.

use serde_json::Value;

use super::{annotations, resize};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit,
};

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The members that may change, each by specific rules.
const MUTABLE: [&str; 3] = ["activeDeadlineSeconds", "tolerations", "schedulingGates"];

pub(super) fn validate_update(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
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
            let name = gate.at("name");
            errors.push(name.forbidden(format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            )));
        }
    }
    // Most updates leave the spec unchanged; the following code copies it three times.
    if spec.value == old.value {
        return;
    }
    let is_gated = !old_gates.is_empty();
    if is_gated {
        gated_changes(&spec, &old, errors);
    }
    let mut allowed = spec.value.clone();
    munge(&mut allowed, old.value, is_gated);
    if without_empty(&allowed) != without_empty(old.value) {
        errors.push(spec.forbidden(UPDATABLE));
    }
}

/// Reverts the permitted changes.
fn munge(spec: &mut Value, old: &Value, is_gated: bool) {
    for list in ["containers", "initContainers"] {
        let old_containers = old.get(list).and_then(Value::as_array);
        let new_containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for (new, old) in new_containers.into_iter().flatten().zip(old_containers.into_iter().flatten()) {
            edit::take_from(new, old, "image");
        }
    }
    for member in MUTABLE {
        edit::take_from(spec, old, member);
    }
    if is_gated {
        edit::take_from(spec, old, "nodeSelector");
        take_node_affinity(spec, old);
    }
    let was_negative =
        old.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0);
    if was_negative && spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64) == Some(1) {
        edit::take_from(spec, old, "terminationGracePeriodSeconds");
    }
}

/// Reverts a change of the node affinity. The rest of the affinity is immutable even for a gated pod.
fn take_node_affinity(spec: &mut Value, old: &Value) {
    let node_affinity = old.pointer("/affinity/nodeAffinity").filter(|affinity| !affinity.is_null()).cloned();
    let has_affinity = old.get("affinity").is_some_and(|affinity| !affinity.is_null());
    let Some(affinity) = edit::object(spec, "affinity") else { return };
    match node_affinity {
        Some(node_affinity) => affinity.insert("nodeAffinity".to_owned(), node_affinity),
        None => affinity.remove("nodeAffinity"),
    };
    if !has_affinity
        && affinity.is_empty()
        && let Some(spec) = spec.as_object_mut()
    {
        spec.remove("affinity");
    }
}

/// Checks changes that only a gated pod permits: additions to its node selector and its node affinity.
fn gated_changes(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (selector, old_selector) = (spec.at("nodeSelector"), old.at("nodeSelector"));
    if old_selector.entries().any(|(name, value)| selector.key(name).value != value.value) {
        errors.push(
            selector.invalid("only additions to spec.nodeSelector are allowed (no mutations or deletions)"),
        );
    }
    let (affinity, old_affinity) = (spec.at("affinity"), old.at("affinity"));
    let (nodes, old_nodes) = (affinity.at("nodeAffinity"), old_affinity.at("nodeAffinity"));
    let member = "requiredDuringSchedulingIgnoredDuringExecution";
    let (required, old_required) = (nodes.at(member), old_nodes.at(member));
    let (terms, old_terms) = (required.at("nodeSelectorTerms"), old_required.at("nodeSelectorTerms"));
    if old_terms.is_empty() {
        return;
    }
    if terms.items().count() != old_terms.items().count() {
        errors.push(terms.invalid("no additions/deletions to non-empty NodeSelectorTerms list are allowed"));
        return;
    }
    for (term, before) in terms.items().zip(old_terms.items()) {
        if !has_only_additions(&term, &before) {
            errors.push(term.invalid("only additions are allowed (no mutations or deletions)"));
        }
    }
}

fn has_only_additions(term: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|list| old.at(list).is_empty()) {
        return lists.iter().all(|list| term.at(list).is_empty());
    }
    lists.iter().all(|list| {
        let (now, before) = (term.at(list), old.at(list));
        now.items().count() >= before.items().count()
            && now.items().zip(before.items()).all(|(now, before)| edit::is_same(now.value, before.value))
    })
}

/// Returns the value without empty members, which are equivalent to absent ones.
fn without_empty(value: &Value) -> Value {
    let Some(members) = value.as_object() else { return value.clone() };
    let is_present = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    members
        .iter()
        .filter(|(_, value)| is_present(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn deadline(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
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

/// Checks that tolerations are only added. The duration of an existing toleration may change.
fn only_added_tolerations(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let tolerations = spec.at("tolerations");
    for old in old.at("tolerations").items() {
        let expected = without_seconds(old.value);
        if !tolerations.items().any(|new| without_seconds(new.value) == expected) {
            errors.push(
                tolerations.forbidden("existing toleration can not be modified except its tolerationSeconds"),
            );
            return;
        }
    }
}

pub(super) fn validate_subresource(name: &str, object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    super::validate::pod(object, errors);
    if name == "resize" {
        resize::validate(object, old, errors);
    }
    if name == "ephemeralcontainers" {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let new = spec.at("ephemeralContainers");
        for old in old.at("ephemeralContainers").items() {
            let same = new.items().find(|new| new.at("name").value == old.at("name").value);
            let change = match same {
                None => "removed",
                Some(same) if !edit::is_same(same.value, old.value) => "changed",
                Some(_) => continue,
            };
            let name = old.at("name").text();
            errors
                .push(new.forbidden(format!("existing ephemeral containers {name:?} may not be {change}\n")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Cursor, validate_update};

    fn pod(spec: &Value) -> Value {
        let mut pod =
            json!({"spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "a"}]}});
        for (name, value) in spec.as_object().unwrap() {
            pod["spec"][name] = value.clone();
        }
        pod
    }

    #[test]
    fn only_mutable_pod_fields_can_be_updated() {
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
            (gated.clone(), json!({"nodeSelector": {"a": "b"}}), true),
            (gated, json!({"affinity": {"podAffinity": {}}}), false),
            (
                json!({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}}),
                json!({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "c"}}),
                false,
            ),
            (json!({"terminationGracePeriodSeconds": -3}), json!({"terminationGracePeriodSeconds": 1}), true),
            (json!({}), json!({"nodeSelector": {"a": "b"}}), false),
        ];
        for (old, new, is_taken) in table {
            let mut errors = Vec::new();
            validate_update(&Cursor::root(&pod(&new)), &Cursor::root(&pod(&old)), &mut errors);
            assert_eq!(errors.is_empty(), is_taken, "{old} -> {new}: {errors:?}");
        }
    }
}
