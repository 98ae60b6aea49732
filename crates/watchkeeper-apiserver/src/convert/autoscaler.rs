//! Conversion of horizontal pod autoscalers. Version v1 has fields for the CPU only and keeps all other metrics in
//! annotations.

use serde_json::{Map, Value, json};

use super::copy;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The paths of the parts of a metric: in the form of the annotations, and in v2.
type Paths = &'static [(&'static str, &'static str)];

/// The target metrics (`spec`), by source.
const TARGETS: [(&str, Paths); 5] = [
    (
        "resource",
        &[
            ("name", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("container", "container"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("targetValue", "target.value"),
            ("averageValue", "target.averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("targetValue", "target.value"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
];

/// The measured metrics (`status`), by source.
const CURRENTS: [(&str, Paths); 5] = [
    (
        "resource",
        &[
            ("name", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("container", "container"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("currentValue", "current.value"),
            ("averageValue", "current.averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("currentValue", "current.value"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
];

/// Returns a metric with its parts moved to the paths of the other version.
fn moved(metric: &Value, sources: &[(&str, Paths)], is_to_new: bool) -> Value {
    let mut out = json!({"type": metric["type"]});
    for (source, paths) in sources {
        let Some(from) = metric.get(*source).filter(|from| from.is_object()) else { continue };
        let mut to = Value::Object(Map::new());
        for (old, new) in *paths {
            let (from_path, to_path) = if is_to_new { (*old, *new) } else { (*new, *old) };
            copy(from, from_path, &mut to, to_path);
        }
        out[*source] = to;
    }
    out
}

/// Sets the target type of a metric of v2, which v1 leaves implicit.
fn name_target(metric: &mut Value) {
    for (source, _) in TARGETS {
        let Some(target) = metric.get_mut(source).and_then(|source| source.get_mut("target")) else {
            continue;
        };
        let ty = if target.get("averageUtilization").is_some() {
            "Utilization"
        } else if target.get("value").is_some() && target.get("averageValue").is_none() {
            "Value"
        } else {
            "AverageValue"
        };
        target["type"] = ty.into();
    }
}

fn is_cpu_share(metric: &Value) -> bool {
    let resource = &metric["resource"];
    metric["type"] == "Resource"
        && resource["name"] == "cpu"
        && resource["target"]["averageUtilization"].is_number()
}

/// Removes a member from a part of the object and returns it.
fn take(object: &mut Value, part: &str, member: &str) -> Option<Value> {
    object.get_mut(part)?.as_object_mut()?.remove(member).filter(|value| !value.is_null())
}

/// Removes an annotation from the object and returns its parsed value.
fn take_annotation(object: &mut Value, name: &str) -> Option<Value> {
    let text = object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?.remove(name)?;
    serde_json::from_str(text.as_str()?).ok()
}

fn annotate(object: &mut Value, name: &str, value: &Value) {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    annotations[name] = value.to_string().into();
}

fn items(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

pub(super) fn to_v1(object: &mut Value) {
    for name in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        take_annotation(object, name);
    }
    let metrics = items(take(object, "spec", "metrics"));
    if let Some(cpu) = metrics.iter().find(|metric| is_cpu_share(metric)) {
        object["spec"]["targetCPUUtilizationPercentage"] =
            cpu["resource"]["target"]["averageUtilization"].clone();
    }
    let others: Vec<Value> = metrics
        .iter()
        .filter(|metric| !is_cpu_share(metric))
        .map(|metric| moved(metric, &TARGETS, false))
        .collect();
    if !others.is_empty() {
        annotate(object, METRICS, &others.into());
    }
    let current = items(take(object, "status", "currentMetrics"));
    let cpu =
        current.iter().find(|metric| metric["type"] == "Resource" && metric["resource"]["name"] == "cpu");
    let share =
        cpu.map(|cpu| &cpu["resource"]["current"]["averageUtilization"]).filter(|share| share.is_number());
    if let Some(share) = share {
        object["status"]["currentCPUUtilizationPercentage"] = share.clone();
    }
    if !current.is_empty() {
        let current: Vec<Value> = current.iter().map(|metric| moved(metric, &CURRENTS, false)).collect();
        annotate(object, CURRENT_METRICS, &current.into());
    }
    let conditions = items(take(object, "status", "conditions"));
    if !conditions.is_empty() {
        annotate(object, CONDITIONS, &conditions.into());
    }
    if let Some(behavior) = take(object, "spec", "behavior") {
        annotate(object, BEHAVIOR, &behavior);
    }
}

/// Moves the CPU utilization and the annotations of a v1 object to the fields of v2.
pub(crate) fn to_v2(object: &mut Value) {
    let mut metrics: Vec<Value> = items(take_annotation(object, METRICS))
        .iter()
        .map(|metric| {
            let mut metric = moved(metric, &TARGETS, true);
            name_target(&mut metric);
            metric
        })
        .collect();
    if let Some(share) = take(object, "spec", "targetCPUUtilizationPercentage") {
        let target = json!({"type": "Utilization", "averageUtilization": share});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    if !metrics.is_empty() {
        object["spec"]["metrics"] = metrics.into();
    }
    let share = take(object, "status", "currentCPUUtilizationPercentage");
    let current: Vec<Value> = items(take_annotation(object, CURRENT_METRICS))
        .iter()
        .map(|metric| moved(metric, &CURRENTS, true))
        .collect();
    if !current.is_empty() {
        object["status"]["currentMetrics"] = current.into();
    } else if let Some(share) = share {
        let current = json!({"averageUtilization": share});
        object["status"]["currentMetrics"] =
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}]);
    }
    let conditions = items(take_annotation(object, CONDITIONS));
    if !conditions.is_empty() {
        object["status"]["conditions"] = conditions.into();
    }
    if let Some(behavior) = take_annotation(object, BEHAVIOR).filter(Value::is_object) {
        object["spec"]["behavior"] = behavior;
    }
}
