//! Volumes, claims, classes, CSI objects, attachments.

use serde_json::{Value, json};

use super::{NOW, created, creates, updated, updates};
use crate::strategy::{Part, for_builtin};

const GROUP: &str = "storage.k8s.io";

fn volume() -> Value {
    json!({"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d.example.com", "volumeHandle": "h"},
    }})
}

#[test]
fn persistent_volumes_are_validated_on_create_and_update() {
    creates(
        "",
        "PersistentVolume",
        &volume(),
        &[
            ("/spec/accessModes", json!([]), &["spec.accessModes Required"]),
            ("/spec/accessModes", json!(["Odd"]), &["spec.accessModes NotSupported"]),
            (
                "/spec/accessModes",
                json!(["ReadWriteOnce", "ReadWriteOncePod"]),
                &["spec.accessModes Forbidden"],
            ),
            ("/spec/capacity", json!({}), &["spec.capacity NotSupported", "spec.capacity Required"]),
            ("/spec/capacity/storage", json!("0"), &["spec.capacity[storage] Invalid"]),
            (
                "/spec/persistentVolumeReclaimPolicy",
                json!("Odd"),
                &["spec.persistentVolumeReclaimPolicy NotSupported"],
            ),
            ("/spec/csi/driver", json!(""), &["spec.csi.driver Required"]),
            ("/spec/csi/driver", json!("a_b"), &["spec.csi.driver Invalid"]),
            ("/spec/csi/driver", json!("a".repeat(64)), &["spec.csi.driver TooLong"]),
            ("/spec/csi/volumeHandle", json!(""), &["spec.csi.volumeHandle Required"]),
            (
                "/spec/csi/nodePublishSecretRef",
                json!({"name": "s"}),
                &["spec.csi.nodePublishSecretRef.namespace Required"],
            ),
            ("/spec/csi", Value::Null, &["spec Required"]),
            ("/spec/nfs", json!({"server": "s", "path": "/"}), &["spec.csi Forbidden"]),
            (
                "/spec/hostPath",
                json!({"path": "/a/../b"}),
                &["spec.csi Forbidden", "spec.hostPath.path Invalid"],
            ),
            (
                "/spec/gcePersistentDisk",
                json!({"pdName": ""}),
                &["spec.csi Forbidden", "spec.persistentDisk.pdName Required"],
            ),
            ("/spec/local", json!({"path": "/a"}), &["spec.csi Forbidden", "spec.nodeAffinity Required"]),
            ("/spec/nodeAffinity", json!({}), &["spec.nodeAffinity.required Required"]),
            (
                "/spec/nodeAffinity",
                json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt"}]}]}}),
                &["spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values Required"],
            ),
            ("/spec/volumeMode", json!("Odd"), &["spec.volumeMode NotSupported"]),
            ("/spec/volumeAttributesClassName", json!(""), &["spec.volumeAttributesClassName Required"]),
            (
                "/metadata",
                json!({"name": "x", "annotations": {"volume.beta.kubernetes.io/mount-options": "a"}}),
                &["metadata.annotations.volume.beta.kubernetes.io/mount-options Forbidden"],
            ),
        ],
    );
    updates(
        "",
        "PersistentVolume",
        Part::Main,
        &volume(),
        &[
            ("/spec/csi/volumeHandle", json!("other"), &["spec.persistentvolumesource Forbidden"]),
            ("/spec/csi/controllerExpandSecretRef", json!({"name": "s", "namespace": "n"}), &[]),
            ("/spec/volumeMode", json!("Block"), &["volumeMode Invalid"]),
        ],
    );
}

#[test]
fn a_phase_change_of_a_volume_sets_its_transition_time() {
    let volume = created("", "PersistentVolume", &volume());
    assert_eq!(volume["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": NOW}));
    let mut old = volume.clone();
    old["status"]["lastPhaseTransitionTime"] = json!("2020-01-01T00:00:00Z");
    let status = |new: &Value| {
        updated("", "PersistentVolume", Part::Subresource("status"), &old, new)["status"].clone()
    };
    let mut same = old.clone();
    same["status"] = json!({"phase": "Pending"});
    assert_eq!(status(&same)["lastPhaseTransitionTime"], json!("2020-01-01T00:00:00Z"));
    let mut bound = old.clone();
    bound["status"]["phase"] = json!("Bound");
    assert_eq!(status(&bound)["lastPhaseTransitionTime"], json!(NOW));
}

fn claim() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}})
}

#[test]
fn persistent_volume_claims_are_validated_on_create_update_and_status_update() {
    creates(
        "",
        "PersistentVolumeClaim",
        &claim(),
        &[
            ("/spec/resources", json!({}), &["spec.resources[storage] Required"]),
            ("/spec/resources/requests/storage", json!("0"), &["spec.resources[storage] Invalid"]),
            ("/spec/accessModes/-", json!("ReadWriteOncePod"), &["spec.accessModes Forbidden"]),
            ("/spec/volumeAttributesClassName", json!("A_b"), &["spec.volumeAttributesClassName Invalid"]),
            ("/spec/storageClassName", json!("A_b"), &["spec.storageClassName Invalid"]),
            (
                "/spec/dataSourceRef",
                json!({"kind": "Odd", "name": "a"}),
                &["spec.dataSource Invalid", "spec.dataSourceRef Invalid"],
            ),
            (
                "/spec/dataSourceRef",
                json!({"kind": "K", "apiGroup": "A_b", "name": "a"}),
                &["spec.dataSource.apiGroup Invalid", "spec.dataSourceRef.apiGroup Invalid"],
            ),
            (
                "/spec/dataSource",
                json!({"kind": "PersistentVolumeClaim", "name": ""}),
                &["spec.dataSource.name Required", "spec.dataSourceRef.name Required"],
            ),
        ],
    );
    let mut bound = claim();
    bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
    updates(
        "",
        "PersistentVolumeClaim",
        Part::Main,
        &bound,
        &[
            ("/spec/resources/requests/storage", json!("3Gi"), &[]),
            (
                "/spec/resources/requests/storage",
                json!("1Gi"),
                &["spec.resources.requests.storage Forbidden"],
            ),
            ("/spec/volumeAttributesClassName", json!("a"), &[]),
            ("/spec/volumeMode", json!("Block"), &["spec Forbidden", "volumeMode Invalid"]),
            ("/spec/storageClassName", json!("a"), &[]),
        ],
    );
    updates(
        "",
        "PersistentVolumeClaim",
        Part::Main,
        &claim(),
        &[
            ("/spec/resources/requests/storage", json!("3Gi"), &["spec Forbidden"]),
            ("/spec/volumeName", json!("v"), &[]),
        ],
    );
    updates(
        "",
        "PersistentVolumeClaim",
        Part::Subresource("status"),
        &claim(),
        &[
            ("/status/capacity", json!({"storage": "-1"}), &["status.capacity[storage] Invalid"]),
            (
                "/status/allocatedResourceStatuses",
                json!({"storage": "Odd"}),
                &["status.allocatedResourceStatuses NotSupported"],
            ),
            ("/status/allocatedResources", json!({"cpu": "1"}), &["status.allocatedResources NotSupported"]),
        ],
    );
}

#[test]
fn data_source_and_data_source_ref_of_a_claim_are_kept_consistent() {
    let spec = |extra: Value| {
        let mut claim = claim();
        for (name, value) in extra.as_object().unwrap() {
            claim["spec"][name] = value.clone();
        }
        created("", "PersistentVolumeClaim", &claim)["spec"].clone()
    };
    let source = json!({"kind": "PersistentVolumeClaim", "name": "a"});
    assert_eq!(spec(json!({"dataSource": source}))["dataSourceRef"], source);
    assert_eq!(spec(json!({"dataSourceRef": source}))["dataSource"], source);
    let odd = spec(json!({"dataSource": {"kind": "Odd", "name": "a"}}));
    assert!(odd.get("dataSource").is_none() && odd.get("dataSourceRef").is_none());
    let other =
        spec(json!({"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "o"}}));
    assert!(other.get("dataSourceRef").is_none());
}

#[test]
fn storage_classes_are_validated_on_create_and_update() {
    let class = json!({"provisioner": "a.com/b", "parameters": {"a": "b"}, "allowedTopologies": [
        {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]},
    ]});
    let term = json!({"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]});
    creates(
        GROUP,
        "StorageClass",
        &class,
        &[
            ("/provisioner", json!(""), &["provisioner Required"]),
            ("/provisioner", json!("a b"), &["provisioner Invalid"]),
            ("/parameters", json!({"": "x"}), &["parameters Invalid"]),
            ("/parameters", json!({"a": "x".repeat(300_000)}), &["parameters TooLong"]),
            ("/reclaimPolicy", json!("Recycle"), &["reclaimPolicy NotSupported"]),
            ("/volumeBindingMode", json!("Odd"), &["volumeBindingMode NotSupported"]),
            ("/allowedTopologies/-", term, &["allowedTopologies[1].matchLabelExpressions Duplicate"]),
            (
                "/allowedTopologies/0/matchLabelExpressions/0/values",
                json!([]),
                &["allowedTopologies[0].matchLabelExpressions[0].values Required"],
            ),
        ],
    );
    updates(
        GROUP,
        "StorageClass",
        Part::Main,
        &class,
        &[
            ("/provisioner", json!("c"), &["provisioner Invalid"]),
            ("/parameters", json!({}), &["parameters Invalid"]),
            ("/reclaimPolicy", json!("Retain"), &["reclaimPolicy Invalid"]),
            ("/volumeBindingMode", json!("WaitForFirstConsumer"), &["volumeBindingMode Invalid"]),
            ("/allowVolumeExpansion", json!(true), &[]),
        ],
    );
    let attributes = json!({"driverName": "d", "parameters": {"a": "b"}});
    creates(
        GROUP,
        "VolumeAttributesClass",
        &attributes,
        &[
            ("/driverName", json!(""), &["driverName Required"]),
            ("/parameters", Value::Null, &["parameters Required"]),
        ],
    );
    updates(
        GROUP,
        "VolumeAttributesClass",
        Part::Main,
        &attributes,
        &[
            ("/driverName", json!("e"), &["driverName Forbidden"]),
            ("/parameters/a", json!("c"), &["parameters Forbidden"]),
        ],
    );
}

#[test]
fn csi_drivers_are_validated_and_their_generation_starts_with_the_first_change() {
    let driver = json!({"spec": {"tokenRequests": [{"audience": "a"}]}});
    creates(
        GROUP,
        "CSIDriver",
        &driver,
        &[
            ("/spec/fsGroupPolicy", json!("Odd"), &["spec.fsGroupPolicy NotSupported"]),
            ("/spec/volumeLifecycleModes", json!(["Odd"]), &["spec.volumeLifecycleModes NotSupported"]),
            (
                "/spec/tokenRequests/-",
                json!({"audience": "a"}),
                &["spec.tokenRequests[1].audience Duplicate"],
            ),
            (
                "/spec/tokenRequests/0/expirationSeconds",
                json!(599),
                &["spec.tokenRequests[0].expirationSeconds Invalid"],
            ),
            (
                "/spec/nodeAllocatableUpdatePeriodSeconds",
                json!(9),
                &["spec.nodeAllocatableUpdatePeriodSeconds Invalid"],
            ),
            (
                "/spec",
                json!({"serviceAccountTokenInSecrets": true}),
                &["spec.serviceAccountTokenInSecrets Invalid"],
            ),
        ],
    );
    updates(
        GROUP,
        "CSIDriver",
        Part::Main,
        &driver,
        &[
            ("/spec/attachRequired", json!(false), &["spec.attachedRequired Invalid"]),
            ("/spec/volumeLifecycleModes", json!(["Ephemeral"]), &["spec.volumeLifecycleModes Invalid"]),
        ],
    );
    let stored = created(GROUP, "CSIDriver", &driver);
    assert!(stored["metadata"].get("generation").is_none());
    assert_eq!(stored["spec"]["preventPodSchedulingIfMissing"], json!(false));
    let mut changed = stored.clone();
    changed["spec"]["podInfoOnMount"] = json!(true);
    assert_eq!(
        updated(GROUP, "CSIDriver", Part::Main, &stored, &changed)["metadata"]["generation"],
        json!(1)
    );
    assert_eq!(for_builtin(GROUP, "v1", "CSIDriver").warnings(&stored, None).len(), 1);
}

#[test]
fn csi_nodes_and_storage_capacities_are_validated() {
    let node = json!({"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["a"], "allocatable": {"count": 1}}]}});
    creates(
        GROUP,
        "CSINode",
        &node,
        &[
            ("/spec/drivers/0/name", json!(""), &["spec.drivers[0].name Required"]),
            ("/spec/drivers/0/nodeID", json!(""), &["spec.drivers[0].nodeID Required"]),
            ("/spec/drivers/0/allocatable/count", json!(-1), &["spec.drivers[0].allocatable.count Invalid"]),
            ("/spec/drivers/0/topologyKeys/-", json!("a"), &["spec.drivers[0] Duplicate"]),
            ("/spec/drivers/-", json!({"name": "d", "nodeID": "m"}), &["spec.drivers[1].name Duplicate"]),
        ],
    );
    updates(
        GROUP,
        "CSINode",
        Part::Main,
        &node,
        &[
            ("/spec/drivers/0/nodeID", json!("m"), &["spec.drivers Invalid"]),
            ("/spec/drivers/0/allocatable/count", json!(2), &[]),
        ],
    );
    let capacity = json!({"storageClassName": "a", "capacity": "1Gi"});
    creates(
        GROUP,
        "CSIStorageCapacity",
        &capacity,
        &[
            ("/storageClassName", json!(""), &["storageClassName Invalid"]),
            ("/capacity", json!("-1"), &["capacity Invalid"]),
            ("/nodeTopology", json!({"matchLabels": {"a b": "c"}}), &["nodeTopology.matchLabels Invalid"]),
        ],
    );
    updates(
        GROUP,
        "CSIStorageCapacity",
        Part::Main,
        &capacity,
        &[("/storageClassName", json!("b"), &["storageClassName Invalid"])],
    );
}

#[test]
fn volume_attachments_are_validated_and_have_no_generation() {
    let attachment =
        json!({"spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}});
    creates(
        GROUP,
        "VolumeAttachment",
        &attachment,
        &[
            ("/spec/attacher", json!(""), &["spec.attacher Required"]),
            ("/spec/nodeName", json!(""), &["spec.nodeName Invalid"]),
            ("/spec/source", json!({}), &["spec.source Required"]),
            ("/spec/source/inlineVolumeSpec", json!({}), &["spec.source Forbidden"]),
            (
                "/spec/source/persistentVolumeName",
                json!("A_b"),
                &["spec.source.persistentVolumeName Invalid"],
            ),
            (
                "/spec/source",
                json!({"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"]}}),
                &["spec.source.inlineVolumeSpec Required", "spec.source.inlineVolumeSpec.csi Required"],
            ),
        ],
    );
    updates(
        GROUP,
        "VolumeAttachment",
        Part::Main,
        &attachment,
        &[("/spec/nodeName", json!("m"), &["spec Invalid"])],
    );
    assert!(created(GROUP, "VolumeAttachment", &attachment)["metadata"].get("generation").is_none());
}
