//! The `resize` subresource: changes of the CPU and memory of a pod's containers.

use serde_json::Value;

use super::admission::qos_class;
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit,
};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Copies the resources of containers from `expected`. Other lists of containers are copied whole, so that validation
/// rejects them.
pub(super) fn prepare(spec: &mut Value, expected: &Value) {
    let names = |spec: &Value, list: &str| -> Vec<Value> {
        let containers = spec.get(list).and_then(Value::as_array).into_iter().flatten();
        containers.map(|container| container.get("name").cloned().unwrap_or_default()).collect()
    };
    for list in LISTS {
        if names(spec, list) != names(expected, list) {
            edit::take_from(spec, expected, list);
            continue;
        }
        let new_containers = expected.get(list).and_then(Value::as_array);
        let old_containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for (old, new) in old_containers.into_iter().flatten().zip(new_containers.into_iter().flatten()) {
            edit::take_from(old, new, "resources");
            edit::take_from(old, new, "resizePolicy");
        }
    }
}

/// Checks a resize of a pod.
pub(super) fn validate(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let before = errors.len();
    let old_status = old.at("status");
    let class = old_status.at("qosClass");
    let old_class = if class.is_empty() { qos_class(old.value) } else { class.text() };
    if old_class != qos_class(object.value) {
        errors.push(spec.invalid("Pod QOS Class may not change as a result of resizing"));
    }
    let statuses = old_status.at("containerStatuses");
    let first = statuses.items().find(|status| status.at("state").at("running").is_set());
    if first.is_some_and(|status| !status.at("resources").is_set()) {
        errors.push(spec.forbidden("Pod running on node without support for resize"));
    }
    if same_containers(&spec, &old_spec, errors) {
        removed_resources(&spec, &old_spec, errors);
        other_resources(&spec, &old_spec, errors);
    }
    if errors.len() == before && !edit::is_same(spec.at("volumes").value, old_spec.at("volumes").value) {
        errors.push(spec.at("volumes").forbidden("volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes feature gate is disabled"));
    }
}

fn same_containers(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    for list in LISTS {
        let (new, old) = (spec.at(list), old.at(list));
        if new.items().count() != old.items().count() {
            errors.push(new.forbidden(format!("{list} may not be added or removed on resize")));
            continue;
        }
        for (new, old) in new.items().zip(old.items()) {
            if new.at("name").value != old.at("name").value {
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(new.at("name").forbidden(detail));
            }
        }
    }
    errors.len() == before
}

fn removed_resources(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    for list in ["initContainers", "containers"] {
        for (new, old) in spec.at(list).items().zip(old.at(list).items()) {
            let (resources, old_resources) = (new.at("resources"), old.at("resources"));
            for member in ["requests", "limits"] {
                let amounts = resources.at(member);
                if old_resources.at(member).entries().any(|(name, _)| !amounts.key(name).is_set()) {
                    errors.push(amounts.forbidden(format!("resource {member} cannot be removed")));
                }
            }
        }
    }
}

/// Rejects changes of a container except those of its CPU and memory.
fn other_resources(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let without = |container: &Value| {
        let mut container = container.clone();
        edit::each(&mut container, "resources.requests|limits", &mut |amounts| {
            amounts.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
        });
        edit::each(&mut container, "resources", &mut |resources| {
            resources.retain(|_, value| value.as_object().is_none_or(|members| !members.is_empty()));
        });
        container
    };
    for list in LISTS {
        for (new, old) in spec.at(list).items().zip(old.at(list).items()) {
            if edit::is_same(&without(new.value), &without(old.value)) {
                continue;
            }
            errors.push(if list == "containers" {
                spec.forbidden("only cpu and memory resources are mutable")
            } else {
                new.forbidden("only cpu and memory resources for init or sidecar containers are mutable")
            });
        }
    }
}
