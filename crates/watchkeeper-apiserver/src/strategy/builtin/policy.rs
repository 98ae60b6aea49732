//! Kinds that say how many and which pods there may be.

use serde_json::{Value, json};

use super::{
    row::{CLUSTER, PLAIN, Row},
    workload::int_or_percent,
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self,
        Lit::{N, O, S, Z},
    },
    metadata, names,
};

/// The row of a kind of the groups `autoscaling`, `policy` and `scheduling.k8s.io`.
pub(super) fn find(group: &str, version: &str, kind: &str) -> Option<Row> {
    Some(match (group, kind) {
        ("policy", "PodDisruptionBudget") => DISRUPTION_BUDGET,
        ("autoscaling", "HorizontalPodAutoscaler") if version == "v1" => AUTOSCALER_V1,
        ("autoscaling", "HorizontalPodAutoscaler") => AUTOSCALER,
        ("scheduling.k8s.io", "PriorityClass") => PRIORITY_CLASS,
        _ => return None,
    })
}

const DISRUPTION_BUDGET: Row = Row {
    generation: &["spec"],
    takes_unconditional_update: false,
    status: Some(|| None),
    zeros: &[
        ("", "spec", O),
        ("", "status", O),
        ("status", "currentHealthy", N(0)),
        ("status", "desiredHealthy", N(0)),
        ("status", "disruptionsAllowed", N(0)),
        ("status", "expectedPods", N(0)),
    ],
    validate: |object, errors| {
        let spec = object.at("spec");
        let (least, most) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
        if least.is_set() && most.is_set() {
            errors.push(spec.invalid("minAvailable and maxUnavailable cannot be both set"));
        }
        int_or_percent(&least, errors);
        int_or_percent(&most, errors);
        metadata::label_selector(&spec.at("selector"), errors);
        spec.at("unhealthyPodEvictionPolicy").one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
    },
    ..PLAIN
};

const AUTOSCALER_V1: Row = Row {
    generation: &["spec"],
    status: Some(|| None),
    defaults: |object| edit::fill_all(object, &[("spec", "minReplicas", N(1))]),
    zeros: &[("", "status", O), ("status", "currentReplicas", N(0)), ("status", "desiredReplicas", N(0))],
    validate: |object, errors| {
        validate_scale(object, errors);
        let spec = object.at("spec");
        let share = spec.at("targetCPUUtilizationPercentage");
        if share.int().is_some_and(|share| share < 1) {
            errors.push(share.invalid("must be greater than 0"));
        }
    },
    ..PLAIN
};

const AUTOSCALER: Row = Row {
    defaults: |object| {
        edit::fill_all(object, &[("spec", "minReplicas", N(1))]);
        edit::each(object, "spec", &mut |spec| {
            let has_metrics =
                spec.get("metrics").and_then(Value::as_array).is_some_and(|metrics| !metrics.is_empty());
            if !has_metrics {
                spec.insert(
                    "metrics".to_owned(),
                    json!([{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
                );
            }
        });
        behavior(object);
    },
    zeros: &[
        ("", "status", O),
        ("status", "desiredReplicas", N(0)),
        ("status", "currentMetrics", Z),
        ("status.conditions[]", "lastTransitionTime", Z),
    ],
    validate: |object, errors| {
        validate_scale(object, errors);
        let spec = object.at("spec");
        for metric in spec.at("metrics").items() {
            validate_metric(&metric, errors);
        }
    },
    ..AUTOSCALER_V1
};

const PRIORITY_CLASS: Row = Row {
    generation: &["value", "preemptionPolicy", "globalDefault", "description"],
    defaults: |object| edit::fill_all(object, &[("", "preemptionPolicy", S("PreemptLowerPriority"))]),
    zeros: &[("", "value", N(0))],
    validate: |object, errors| {
        let (value, metadata) = (object.at("value"), object.at("metadata"));
        let name = metadata.at("name");
        let is_system = ["system-node-critical", "system-cluster-critical"].contains(&name.text());
        if name.text().starts_with("system-") && !is_system {
            errors.push(name.forbidden("priority class names with 'system-' prefix are reserved for system use only. error: not a system priority class"));
        } else if !is_system && value.int().is_some_and(|value| value > 1_000_000_000) {
            errors.push(value.forbidden("maximum allowed value of a user defined priority is 1000000000"));
        }
        object.at("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
    },
    validate_update: |object, old, errors| {
        let value = object.at("value");
        if value.value != old.at("value").value {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        object.at("preemptionPolicy").immutable(&old.at("preemptionPolicy"), errors);
    },
    ..CLUSTER
};

/// A direction without rules of its own has these, once one has any.
fn behavior(object: &mut Value) {
    if object.pointer("/spec/behavior").is_none_or(Value::is_null) {
        return;
    }
    let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [policy("Pods", 4), policy("Percent", 100)]});
    let down = json!({"selectPolicy": "Max", "policies": [policy("Percent", 100)]});
    for (direction, rules) in [("scaleUp", up), ("scaleDown", down)] {
        if let Some(members) = edit::object_at(object, &["spec", "behavior", direction]) {
            for (name, value) in rules.as_object().cloned().unwrap_or_default() {
                members.entry(name).or_insert(value);
            }
        }
    }
}

fn validate_scale(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    least.at_least(1, errors);
    match most.int() {
        None | Some(0) => errors.push(most.missing("must be set and greater than 0")),
        Some(_) => most.at_least(1, errors),
    }
    if let (Some(least), Some(count)) = (least.int(), most.int())
        && count < least
        && count != 0
    {
        errors.push(most.invalid("must be greater than or equal to `minReplicas`"));
    }
    let target = spec.at("scaleTargetRef");
    target.at("kind").required_format(names::path_segment, errors);
    target.at("name").required_format(names::path_segment, errors);
}

fn validate_metric(metric: &At<'_>, errors: &mut Errors) {
    const SOURCES: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = metric.at("type");
    if kind.is_empty() {
        errors.push(kind.missing("must specify a metric source type"));
        return;
    }
    let Some((_, member)) = SOURCES.iter().find(|(name, _)| *name == kind.text()) else {
        let names: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        errors.push(kind.unsupported(&names));
        return;
    };
    let source = metric.at(member);
    if !source.is_set() {
        errors.push(source.missing("must populate information for the given metric source"));
        return;
    }
    if matches!(*member, "resource" | "containerResource") {
        let name = source.at("name");
        if name.is_empty() {
            errors.push(name.missing("must specify a resource name"));
        }
    }
    source.at("target").at("type").required_one_of(&["Utilization", "Value", "AverageValue"], errors);
}
