//! Conversion of objects between versions of their kind.
//!
//! A kind that is served twice is stored once; requests and responses in the other version are converted. The versions of a
//! custom kind differ in their apiVersion only: conversion webhooks are not called.

mod autoscaler;
mod event;

use serde_json::Value;

pub(crate) use self::autoscaler::to_v2 as autoscaler_to_v2;

use crate::{kinds::Kind, schema::write_empty};

/// Converts `object` of kind `from` to kind `to`. Without a conversion for the kind, only the `apiVersion` changes.
pub(crate) fn convert(mut object: Value, from: &Kind, to: &Kind) -> Value {
    if from.gvk == to.gvk {
        if to.custom.as_ref().is_some_and(|custom| custom.has_changed) {
            to.strategy.set_defaults(&mut object);
        }
        return object;
    }
    match (from.gvk.group.as_str(), from.gvk.version.as_str(), from.gvk.kind.as_str()) {
        ("", _, "Event") => event::to_newer(&mut object),
        ("events.k8s.io", _, "Event") => event::to_core(&mut object),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaler::to_v2(&mut object),
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => autoscaler::to_v1(&mut object),
        _ => {}
    }
    object["apiVersion"] = to.api_version().into();
    object["kind"] = to.gvk.kind.clone().into();
    if to.custom.is_some() {
        // Members that only the source version has are dropped. Defaults are those of the stored version.
        if to.gvk == to.storage {
            to.strategy.set_defaults(&mut object);
        } else {
            to.strategy.prune(&mut object);
        }
    } else {
        write_empty(&mut object, &to.ty);
    }
    object
}

/// Copies the value at one path of members to another. Paths have the form `a.b`.
fn copy(from: &Value, from_path: &str, to: &mut Value, to_path: &str) {
    let found = from_path.split('.').try_fold(from, |value, member| value.get(member));
    if let Some(found) = found.filter(|found| !found.is_null()) {
        let field = to_path.split('.').fold(to, |value, member| {
            if !value.is_object() {
                *value = Value::Object(serde_json::Map::new());
            }
            &mut value[member]
        });
        *field = found.clone();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::kinds::{GroupVersionKind, Registry};

    fn kind(group: &str, version: &str, kind: &str) -> Arc<Kind> {
        Arc::clone(Registry::new().kinds().by_gvk(&GroupVersionKind::new(group, version, kind)).unwrap())
    }

    #[test]
    fn an_event_survives_conversion_to_events_k8s_io_and_back() {
        let (core, newer) = (kind("", "v1", "Event"), kind("events.k8s.io", "v1", "Event"));
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
            "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "message": "m", "type": "Normal",
            "source": {"component": "c"}, "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": null,
            "eventTime": null, "count": 2, "reportingComponent": "rc", "reportingInstance": "ri"
        });
        let converted = convert(event.clone(), &core, &newer);
        assert_eq!(
            converted,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
                "regarding": {"kind": "Pod", "name": "p"}, "reason": "R", "note": "m", "type": "Normal",
                "deprecatedSource": {"component": "c"}, "deprecatedFirstTimestamp": "2020-01-01T00:00:00Z",
                "deprecatedLastTimestamp": null, "eventTime": null, "deprecatedCount": 2,
                "reportingController": "rc", "reportingInstance": "ri"
            })
        );
        assert_eq!(convert(converted, &newer, &core), event);
    }

    fn scaler() -> Value {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h", "annotations": {"own": "1"}},
            "spec": {
                "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}},
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "Value", "value": "3"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
                ]
            },
            "status": {
                "desiredReplicas": 1,
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                    "current": {"averageUtilization": 40, "averageValue": "100m"}}}],
                "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": null}]
            }
        })
    }

    #[test]
    fn an_autoscaler_v1_has_the_cpu_target_of_v2_metrics() {
        let (old, new) = (
            kind("autoscaling", "v1", "HorizontalPodAutoscaler"),
            kind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        );
        let converted = convert(scaler(), &new, &old);
        assert_eq!(converted["apiVersion"], "autoscaling/v1");
        assert_eq!(converted["spec"]["targetCPUUtilizationPercentage"], 80);
        assert_eq!(converted["status"]["currentCPUUtilizationPercentage"], 40);
        assert_eq!(converted["spec"].get("metrics"), None);
        assert_eq!(
            converted["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"],
            r#"[{"pods":{"metricName":"q","targetAverageValue":"1k"},"type":"Pods"},{"external":{"metricName":"e","targetValue":"3"},"type":"External"}]"#
        );
    }

    #[test]
    fn an_autoscaler_survives_conversion_between_v1_and_v2() {
        let (old, new) = (
            kind("autoscaling", "v1", "HorizontalPodAutoscaler"),
            kind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        );
        assert_eq!(convert(convert(scaler(), &new, &old), &old, &new), scaler());
    }

    #[test]
    fn invalid_conversion_annotations_are_ignored() {
        let (old, new) = (
            kind("autoscaling", "v1", "HorizontalPodAutoscaler"),
            kind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        );
        let object = json!({
            "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "junk"}},
            "spec": {"maxReplicas": 1, "scaleTargetRef": {"kind": "D", "name": "d"}}
        });
        let converted = convert(object, &old, &new);
        assert_eq!(converted["spec"].get("metrics"), None);
        assert_eq!(converted["metadata"].get("annotations"), None);
    }

    #[test]
    fn other_kinds_convert_by_changing_only_the_api_version() {
        let from = kind("", "v1", "ConfigMap");
        let to = Kind { gvk: GroupVersionKind::new("x.io", "v2", "ConfigMap"), ..Kind::clone(&from) };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "b"}});
        let converted = convert(object, &from, &to);
        assert_eq!(converted["apiVersion"], "x.io/v2");
        assert_eq!(converted["data"], json!({"a": "b"}));
    }
}
