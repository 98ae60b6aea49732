use serde_json::json;

use super::super::cases::KindUnderTest;

fn autoscaler(version: &str) -> KindUnderTest {
    KindUnderTest::new(
        "autoscaling",
        version,
        "HorizontalPodAutoscaler",
        &json!({"spec": {"maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}),
    )
}

#[test]
fn each_invalid_field_of_an_autoscaler_is_rejected() {
    let target = |extra: serde_json::Value| json!([{"type": "Resource", "resource": {"name": "cpu", "target": extra}}]);
    autoscaler("v2").check_create(&[
        ("/spec/minReplicas", json!(-1), &["spec.minReplicas Invalid"]),
        ("/spec/minReplicas", json!(0), &["spec.metrics Forbidden"]),
        ("/spec/minReplicas", json!(6), &["spec.maxReplicas Invalid"]),
        ("/spec/maxReplicas", json!(0), &["spec.maxReplicas Required", "spec.maxReplicas Invalid"]),
        ("/spec/scaleTargetRef/apiVersion", json!("v1"), &["spec.scaleTargetRef.apiVersion Invalid"]),
        ("/spec/scaleTargetRef/apiVersion", json!("a/b/c"), &["spec.scaleTargetRef.apiVersion Invalid"]),
        ("/spec/scaleTargetRef/name", json!("a/b"), &["spec.scaleTargetRef.name Invalid"]),
        (
            "/spec/behavior",
            json!({"scaleUp": {"stabilizationWindowSeconds": 3601, "selectPolicy": "Most", "policies": []}}),
            &[
                "spec.behavior.scaleUp.stabilizationWindowSeconds Invalid",
                "spec.behavior.scaleUp.selectPolicy NotSupported",
                "spec.behavior.scaleUp.policies Required",
            ],
        ),
        (
            "/spec/behavior",
            json!({"scaleDown": {"policies": [{"type": "X", "value": 0, "periodSeconds": 1801}], "tolerance": "-1"}}),
            &[
                "spec.behavior.scaleDown.policies[0].type NotSupported",
                "spec.behavior.scaleDown.policies[0].value Invalid",
                "spec.behavior.scaleDown.policies[0].periodSeconds Invalid",
                "spec.behavior.scaleDown.tolerance Invalid",
            ],
        ),
        (
            "/spec/metrics",
            target(json!({"type": "Utilization", "averageUtilization": 0})),
            &["spec.metrics[0].resource.target.averageUtilization Invalid"],
        ),
        (
            "/spec/metrics",
            target(json!({"type": "Utilization"})),
            &["spec.metrics[0].resource.target.averageUtilization Required"],
        ),
        (
            "/spec/metrics",
            target(json!({"type": "Utilization", "averageUtilization": 1, "averageValue": "1"})),
            &["spec.metrics[0].resource.target.averageValue Forbidden"],
        ),
        (
            "/spec/metrics",
            json!([{"type": "Pods"}]),
            &["spec.metrics[0].pods Required"],
        ),
        (
            "/spec/metrics",
            json!([{"type": "Odd"}]),
            &["spec.metrics[0].type NotSupported"],
        ),
        (
            "/spec/metrics",
            json!([{"type": "External", "external": {"metric": {"name": "a/b"}, "target": {"type": "Value", "value": "0"}}}]),
            &["spec.metrics[0].external.metric.name Invalid", "spec.metrics[0].external.target.value Invalid"],
        ),
        (
            "/spec/metrics",
            json!([{"type": "ContainerResource", "containerResource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 5}}}]),
            &["spec.metrics[0].containerResource.container Required"],
        ),
        (
            "/spec/metrics",
            json!([{"type": "Object", "object": {"describedObject": {"kind": "K", "name": "n"},
                "metric": {"name": "m"}, "target": {"type": "Value"}}}]),
            &["spec.metrics[0].object.target.averageValue Required"],
        ),
    ]);
}

#[test]
fn an_autoscaler_v1_is_validated_as_v2() {
    let kind = autoscaler("v1");
    kind.check_create(&[
        (
            "/spec/targetCPUUtilizationPercentage",
            json!(0),
            &["spec.metrics[0].resource.target.averageUtilization Invalid"],
        ),
        ("/spec/scaleTargetRef/kind", json!(""), &["spec.scaleTargetRef.kind Required"]),
    ]);
    assert_eq!(kind.created(&[])["spec"]["targetCPUUtilizationPercentage"], 80);
}

#[test]
fn a_scale_target_stored_without_a_group_is_unchanged() {
    let kind = KindUnderTest::new(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        &json!({"spec": {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "d"}}}),
    );
    kind.check_update(&[
        ("/spec/maxReplicas", json!(6), &[]),
        ("/spec/scaleTargetRef/kind", json!("ReplicaSet"), &["spec.scaleTargetRef.apiVersion Invalid"]),
        ("/spec/scaleTargetRef/kind", json!("ReplicationController"), &[]),
    ]);
    kind.check_status(
        &json!({}),
        &[
            ("/status/currentReplicas", json!(-1), &["status.currentReplicas Invalid"]),
            ("/status/desiredReplicas", json!(-1), &["status.desiredReplicas Invalid"]),
        ],
    );
}

#[test]
fn a_disruption_budget_with_an_invalid_spec_or_status_is_rejected() {
    let budget =
        KindUnderTest::new("policy", "v1", "PodDisruptionBudget", &json!({"spec": {"minAvailable": 1}}));
    budget.check_create(&[
        ("/metadata/name", json!("UPPER_case"), &[]),
        ("/metadata/finalizers", json!(["bare"]), &[]),
        ("/metadata/name", json!("a/b"), &["metadata.name Invalid"]),
        ("/spec/maxUnavailable", json!(1), &["spec Invalid"]),
        ("/spec/minAvailable", json!("x%"), &["spec.minAvailable Invalid"]),
        ("/spec/minAvailable", json!(-1), &["spec.minAvailable Invalid"]),
        ("/spec/unhealthyPodEvictionPolicy", json!("X"), &["spec.unhealthyPodEvictionPolicy NotSupported"]),
    ]);
    budget.check_status(&json!({}), &[
        ("/status/expectedPods", json!(-1), &["status.expectedPods Invalid"]),
        (
            "/status/conditions",
            json!([{"type": "A", "status": "Maybe", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"}]),
            &["status.conditions[0].status NotSupported"],
        ),
    ]);
}

#[test]
fn the_generation_of_a_priority_class_does_not_increase() {
    let class = KindUnderTest::new(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        &json!({"metadata": {"name": "x"}, "value": 5}),
    );
    class.check_create(&[
        ("/value", json!(1_000_000_001), &["value Forbidden"]),
        ("/metadata/name", json!("system-x"), &["metadata.name Forbidden"]),
        ("/metadata/name", json!("system-node-critical"), &["metadata.name Forbidden"]),
        ("/preemptionPolicy", json!("X"), &["preemptionPolicy NotSupported"]),
    ]);
    class.check_update(&[("/value", json!(6), &["value Forbidden"]), ("/description", json!("d"), &[])]);
    let old = class.created(&[]);
    assert_eq!(old["metadata"]["generation"], 1);
    assert_eq!(class.updated(&old, &[("/description", json!("d"))])["metadata"]["generation"], 1);
}
