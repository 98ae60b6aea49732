//! The cells of storage kinds: volumes, claims and classes.

use serde_json::Value;

use super::{RowContext, joined, none_if_empty};

pub(super) fn cells(
    group: &str,
    plural: &str,
    row: &RowContext<'_>,
    default_name: Option<&str>,
) -> Option<Vec<Value>> {
    let (name, age) = (row.name(), row.age());
    let phase = || if row.is_deleting() { "Terminating".into() } else { row.text("status.phase").into() };
    let flag = |path: &str, absent: bool| Value::Bool(row.at(path).as_bool().unwrap_or(absent));
    Some(match (group, plural) {
        ("", "persistentvolumes") => {
            let claim = row.at("spec.claimRef");
            let part = |member: &str| claim[member].as_str().unwrap_or_default();
            let claim = if claim.is_object() {
                format!("{}/{}", part("namespace"), part("name"))
            } else {
                String::new()
            };
            vec![
                name,
                row.or("spec.capacity.storage", "0"),
                access_modes(row, "spec.accessModes").into(),
                row.text("spec.persistentVolumeReclaimPolicy").into(),
                phase(),
                claim.into(),
                class(row).into(),
                row.or("spec.volumeAttributesClassName", "<unset>"),
                row.text("status.reason").into(),
                age,
                row.or("spec.volumeMode", "<unset>"),
            ]
        }
        ("", "persistentvolumeclaims") => {
            let is_bound = !row.text("spec.volumeName").is_empty();
            vec![
                name,
                phase(),
                row.text("spec.volumeName").into(),
                if is_bound { row.or("status.capacity.storage", "0") } else { "".into() },
                if is_bound { access_modes(row, "status.accessModes").into() } else { "".into() },
                class(row).into(),
                row.or("spec.volumeAttributesClassName", "<unset>"),
                age,
                row.or("spec.volumeMode", "<unset>"),
            ]
        }
        ("storage.k8s.io", "storageclasses") => {
            let is_default = default_name.is_some() && default_name == row.at("metadata.name").as_str();
            let mark = if is_default { " (default)" } else { "" };
            vec![
                format!("{}{mark}", row.text("metadata.name")).into(),
                row.text("provisioner").into(),
                row.or("reclaimPolicy", "Delete"),
                row.or("volumeBindingMode", "Immediate"),
                flag("allowVolumeExpansion", false),
                age,
            ]
        }
        ("storage.k8s.io", "volumeattributesclasses") => vec![name, row.text("driverName").into(), age],
        ("storage.k8s.io", "volumeattachments") => vec![
            name,
            row.text("spec.attacher").into(),
            row.text("spec.source.persistentVolumeName").into(),
            row.text("spec.nodeName").into(),
            flag("status.attached", false),
            age,
        ],
        ("storage.k8s.io", "csinodes") => vec![name, row.count("spec.drivers").into(), age],
        ("storage.k8s.io", "csidrivers") => {
            let requests = row.at("spec.tokenRequests").as_array();
            let audiences = requests.map_or_else(
                || "<unset>".to_owned(),
                |requests| joined(requests.iter().map(|request| &request["audience"]), ","),
            );
            vec![
                name,
                flag("spec.attachRequired", true),
                flag("spec.podInfoOnMount", false),
                flag("spec.storageCapacity", false),
                audiences.into(),
                flag("spec.requiresRepublish", false),
                none_if_empty(joined(row.list("spec.volumeLifecycleModes").iter(), ",")),
                age,
            ]
        }
        _ => return None,
    })
}

/// Returns the storage class. The annotation is older than the field, and takes precedence.
fn class<'a>(row: &RowContext<'a>) -> &'a str {
    let annotation = row.at("metadata.annotations")["volume.beta.kubernetes.io/storage-class"].as_str();
    annotation.unwrap_or_else(|| row.text("spec.storageClassName"))
}

/// Returns the access modes, without duplicates and in a fixed order.
fn access_modes(row: &RowContext<'_>, path: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = row.list(path);
    let shorts =
        SHORT.iter().filter(|(mode, _)| modes.iter().any(|given| given == mode)).map(|(_, short)| *short);
    shorts.collect::<Vec<_>>().join(",")
}
