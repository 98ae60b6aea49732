use serde_json::{Value, json};

use super::super::cases::KindUnderTest;

fn workload(kind: &str) -> KindUnderTest {
    KindUnderTest::new(
        "apps",
        "v1",
        kind,
        &json!({"spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    )
}

#[test]
fn each_invalid_field_of_a_deployment_and_its_template_is_rejected() {
    workload("Deployment").check_create(&[
        (
            "/spec/template",
            Value::Null,
            &["spec.template.metadata.labels Invalid", "spec.template.spec.containers Required"],
        ),
        ("/spec/template/metadata/labels", json!({"a": "b", "x y": "z"}), &["spec.template.labels Invalid"]),
        ("/spec/template/metadata/annotations", json!({"x y": "z"}), &["spec.template.annotations Invalid"]),
        ("/spec/strategy", json!({"type": "X"}), &["spec.strategy NotSupported"]),
        (
            "/spec/strategy",
            json!({"rollingUpdate": {"maxUnavailable": "101%"}}),
            &["spec.strategy.rollingUpdate.maxUnavailable Invalid"],
        ),
        (
            "/spec/strategy",
            json!({"rollingUpdate": {"maxSurge": "x"}}),
            &["spec.strategy.rollingUpdate.maxSurge Invalid"],
        ),
        (
            "/spec/selector",
            json!({"matchExpressions": [{"key": "a", "operator": "X"}]}),
            &["spec.selector.matchExpressions[0].operator Invalid", "spec.selector Invalid"],
        ),
        (
            "/spec/template/spec/restartPolicy",
            json!("Never"),
            &["spec.template.spec.restartPolicy NotSupported"],
        ),
        (
            "/spec/template/spec/activeDeadlineSeconds",
            json!(5),
            &["spec.template.spec.activeDeadlineSeconds Forbidden"],
        ),
        ("/spec/template/spec/os", json!({"name": "plan9"}), &["spec.template.spec.os NotSupported"]),
    ]);
    workload("Deployment").check_update(&[(
        "/spec/selector",
        json!({"matchLabels": {"a": "c"}}),
        &["spec.template.metadata.labels Invalid", "spec.selector Invalid"],
    )]);
    workload("Deployment").check_status(
        &json!({"replicas": 2, "collisionCount": 2}),
        &[
            ("/status/readyReplicas", json!(3), &["status.readyReplicas Invalid"]),
            ("/status/availableReplicas", json!(1), &["status.availableReplicas Invalid"]),
            ("/status/collisionCount", json!(1), &["status.collisionCount Invalid"]),
            ("/status/terminatingReplicas", json!(-1), &["status.terminatingReplicas Invalid"]),
        ],
    );
}

#[test]
fn host_ports_are_not_defaulted_in_a_template() {
    let changes = [
        ("/spec/template/spec/hostNetwork", json!(true)),
        ("/spec/template/spec/containers/0/ports", json!([{"containerPort": 80}])),
    ];
    let created = workload("Deployment").created(&changes);
    assert_eq!(
        created.pointer("/spec/template/spec/containers/0/ports/0"),
        Some(&json!({"containerPort": 80, "protocol": "TCP"}))
    );
}

#[test]
fn a_daemon_set_counts_template_changes_in_an_annotation() {
    let kind = workload("DaemonSet");
    let annotation = "/metadata/annotations/deprecated.daemonset.template.generation";
    let old = kind.created(&[]);
    assert_eq!(old.pointer(annotation), Some(&json!("1")));
    let same =
        kind.updated(&old, &[("/metadata/annotations", json!({})), ("/spec/minReadySeconds", json!(1))]);
    assert_eq!(same.pointer(annotation), Some(&json!("1")));
    let changed = kind.updated(&old, &[("/spec/template/spec/containers/0/image", json!("j"))]);
    assert_eq!(changed.pointer(annotation), Some(&json!("2")));
    kind.check_create(&[
        ("/spec/selector", Value::Null, &["spec.template.metadata.labels Invalid"]),
        ("/spec/updateStrategy", json!({"type": "X"}), &["spec.updateStrategy NotSupported"]),
        (
            "/spec/updateStrategy",
            json!({"rollingUpdate": {"maxUnavailable": 0}}),
            &["spec.updateStrategy.rollingUpdate.maxUnavailable Required"],
        ),
        (
            "/spec/updateStrategy",
            json!({"rollingUpdate": {"maxSurge": 1}}),
            &["spec.updateStrategy.rollingUpdate.maxSurge Invalid"],
        ),
    ]);
    kind.check_status(&json!({}), &[("/status/numberReady", json!(-1), &["status.numberReady Invalid"])]);
}

#[test]
fn invalid_claim_templates_of_a_stateful_set_are_rejected() {
    let kind = workload("StatefulSet");
    let claim = |spec: Value| json!([{"metadata": {"name": "v"}, "kind": "Odd", "spec": spec}]);
    let storage = json!({"requests": {"storage": "1Gi"}});
    kind.check_create(&[
        (
            "/spec/volumeClaimTemplates",
            claim(json!({"accessModes": ["ReadWriteOnce"], "resources": storage})),
            &[],
        ),
        (
            "/spec/volumeClaimTemplates",
            claim(json!({})),
            &[
                "spec.volumeClaimTemplates[0].spec.accessModes Required",
                "spec.volumeClaimTemplates[0].spec.resources[storage] Required",
            ],
        ),
        (
            "/spec/volumeClaimTemplates",
            claim(json!({"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"], "resources": storage})),
            &["spec.volumeClaimTemplates[0].spec.accessModes Forbidden"],
        ),
        ("/spec/updateStrategy", json!({"type": "Recreate"}), &["spec.updateStrategy Invalid"]),
        (
            "/spec/persistentVolumeClaimRetentionPolicy",
            json!({"whenDeleted": "X"}),
            &["spec.persistentVolumeClaimRetentionPolicy.whenDeleted NotSupported"],
        ),
        ("/spec/template/metadata/labels", json!({"a": "b", "x y": "z"}), &["spec.template.labels Invalid"]),
    ]);
    let changes = [(
        "/spec/volumeClaimTemplates",
        claim(json!({"accessModes": ["ReadWriteOnce"], "resources": storage})),
    )];
    let created = kind.created(&changes);
    assert_eq!(created.pointer("/spec/volumeClaimTemplates/0/kind"), Some(&json!("PersistentVolumeClaim")));
    kind.check_update(&[
        ("/spec/serviceName", json!("s"), &["spec.serviceName Invalid"]),
        ("/spec/podManagementPolicy", json!("Parallel"), &["spec.podManagementPolicy Invalid"]),
    ]);
}

#[test]
fn invalid_statuses_of_replica_sets_and_replication_controllers_are_rejected() {
    for kind in [
        workload("ReplicaSet"),
        KindUnderTest::new(
            "",
            "v1",
            "ReplicationController",
            &json!({"spec": {
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        ),
    ] {
        kind.check_status(
            &json!({"replicas": 1}),
            &[
                ("/status/fullyLabeledReplicas", json!(2), &["status.fullyLabeledReplicas Invalid"]),
                ("/status/observedGeneration", json!(-1), &["status.observedGeneration Invalid"]),
            ],
        );
        kind.check_create(&[("/spec/minReadySeconds", json!(-1), &["spec.minReadySeconds Invalid"])]);
    }
}

#[test]
fn a_controller_revision_holds_an_object() {
    KindUnderTest::new("apps", "v1", "ControllerRevision", &json!({"revision": 1, "data": {"a": 1}}))
        .check_create(&[
            ("/data", Value::Null, &["data Required"]),
            ("/data", json!([1]), &["data Required"]),
            ("/revision", json!(-1), &["revision Invalid"]),
        ]);
}
