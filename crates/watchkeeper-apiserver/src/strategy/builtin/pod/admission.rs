//! Built-in admission of pods: priority, tolerations, quality of service.

use serde_json::{Value, json};

use crate::strategy::{edit, quantity::Quantity};

/// The taints of temporarily unavailable nodes, which a pod tolerates for a limited time.
const PATIENCE: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const PATIENCE_SECONDS: i64 = 300;

/// The priority classes that need no object.
const SYSTEM_PRIORITIES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) fn prepare_create(object: &mut Value) {
    if let Some(spec) = edit::object(object, "spec") {
        let class = edit::text(spec, "priorityClassName");
        let priority =
            SYSTEM_PRIORITIES.iter().find(|(name, _)| *name == class).map_or(0, |(_, value)| *value);
        edit::fill(spec, "priority", edit::DefaultValue::IntPtr(priority));
        edit::fill(spec, "preemptionPolicy", edit::DefaultValue::Str("PreemptLowerPriority"));
    }
    tolerate(object);
    apply_label_keys(object);
    let class = qos_class(object);
    let is_gated = object
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|gates| !gates.is_empty());
    if let Some(status) = edit::object(object, "status") {
        status.insert("qosClass".to_owned(), class.into());
        if is_gated {
            status.insert(
                "conditions".to_owned(),
                json!([{
                    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": null, "lastTransitionTime": null,
                }]),
            );
        }
    }
}

/// The paths of affinity terms and spread constraints, which have `matchLabelKeys`.
const LABEL_KEY_PATHS: [&str; 3] = [
    "spec.affinity.podAffinity|podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm",
    "spec.affinity.podAffinity|podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[]",
    "spec.topologySpreadConstraints[]",
];

/// Adds the labels that `matchLabelKeys` and `mismatchLabelKeys` name to the selectors beside them.
fn apply_label_keys(object: &mut Value) {
    let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    for path in LABEL_KEY_PATHS {
        edit::each(object, path, &mut |term| {
            let mut requirements = Vec::new();
            for (member, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
                let keys = term.get(member).and_then(Value::as_array).into_iter().flatten();
                for key in keys.filter_map(Value::as_str) {
                    if let Some(value) = labels.get(key) {
                        requirements.push(json!({"key": key, "operator": operator, "values": [value]}));
                    }
                }
            }
            let Some(Value::Object(selector)) = term.get_mut("labelSelector") else { return };
            if requirements.is_empty() {
                return;
            }
            let expressions = selector.entry("matchExpressions").or_insert_with(|| json!([]));
            if expressions.is_null() {
                *expressions = json!([]);
            }
            if let Value::Array(expressions) = expressions {
                expressions.extend(requirements);
            }
        });
    }
}

/// Restores fields that were set at creation and that a client omits.
pub(super) fn prepare_update(object: &mut Value, old: &Value) {
    if let Some(spec) = edit::object(object, "spec") {
        for member in ["priority", "preemptionPolicy"] {
            if let Some(value) = old.get("spec").and_then(|spec| spec.get(member)) {
                spec.entry(member).or_insert_with(|| value.clone());
            }
        }
    }
    tolerate(object);
}

fn tolerate(object: &mut Value) {
    let Some(spec) = edit::object(object, "spec") else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Value::Array(tolerations) = tolerations else { return };
    for taint in PATIENCE {
        let covers = |toleration: &Value| {
            let text = |name| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
            let key_matches = text("key") == taint || text("key").is_empty();
            key_matches && matches!(text("effect"), "NoExecute" | "")
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE_SECONDS,
            }));
        }
    }
}

/// Returns the `QoS` class of a pod, which follows from its requests and limits.
pub(super) fn qos_class(object: &Value) -> &'static str {
    let mut is_guaranteed = true;
    let mut has_resources = false;
    let lists = ["containers", "initContainers"];
    let containers = lists.iter().filter_map(|list| object.get("spec")?.get(list)?.as_array()).flatten();
    for container in containers {
        let amount = |list: &str, name: &str| {
            let amount = container.get("resources")?.get(list)?.get(name)?;
            Quantity::from_value(amount).filter(|amount| !amount.is_zero())
        };
        for name in ["cpu", "memory"] {
            let (request, limit) = (amount("requests", name), amount("limits", name));
            has_resources |= request.is_some() || limit.is_some();
            is_guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (has_resources, is_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{prepare_create, qos_class};

    #[test]
    fn qos_class_follows_requests_and_limits() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let table: [(Value, &str); 5] = [
            (json!([{}]), "BestEffort"),
            (json!([{"resources": {"requests": {"cpu": "1"}}}]), "Burstable"),
            (json!([{"resources": {"requests": both, "limits": both}}]), "Guaranteed"),
            (json!([{"resources": {"limits": both}}, {}]), "Burstable"),
            (
                json!([{"resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": both}}]),
                "Guaranteed",
            ),
        ];
        for (containers, expected) in table {
            assert_eq!(qos_class(&json!({"spec": {"containers": containers}})), expected, "{containers}");
        }
    }

    #[test]
    fn match_label_keys_are_added_to_the_label_selector() {
        let mut pod = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"topologySpreadConstraints": [
            {"matchLabelKeys": ["a", "c"], "labelSelector": {}}, {"matchLabelKeys": ["a"]}]}});
        prepare_create(&mut pod);
        let constraints = &pod["spec"]["topologySpreadConstraints"];
        let expected = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]});
        assert_eq!(constraints[0]["labelSelector"], expected);
        assert!(constraints[1].get("labelSelector").is_none());
    }

    #[test]
    fn existing_tolerations_are_kept() {
        let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let mut pod = json!({"spec": {"tolerations": [own]}});
        prepare_create(&mut pod);
        let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
        assert_eq!(tolerations.len(), 2);
        assert_eq!(tolerations[0], own);
        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        prepare_create(&mut pod);
        assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 1);
    }
}
