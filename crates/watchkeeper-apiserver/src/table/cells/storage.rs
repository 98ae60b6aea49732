//! The cells of storage kinds: volumes, claims and classes.

use serde_json::Value;

use super::{Shown, joined, none_if_empty};

pub(super) fn cells(
    group: &str,
    plural: &str,
    shown: &Shown<'_>,
    default_name: Option<&str>,
) -> Option<Vec<Value>> {
    let (name, age) = (shown.name(), shown.age());
    let phase = || if shown.is_deleting() { "Terminating".into() } else { shown.text("status.phase").into() };
    let flag = |path: &str, absent: bool| Value::Bool(shown.at(path).as_bool().unwrap_or(absent));
    Some(match (group, plural) {
        ("", "persistentvolumes") => {
            let claim = shown.at("spec.claimRef");
            let part = |member: &str| claim[member].as_str().unwrap_or_default();
            let claim = if claim.is_object() {
                format!("{}/{}", part("namespace"), part("name"))
            } else {
                String::new()
            };
            vec![
                name,
                shown.or("spec.capacity.storage", "0"),
                access_modes(shown, "spec.accessModes").into(),
                shown.text("spec.persistentVolumeReclaimPolicy").into(),
                phase(),
                claim.into(),
                class(shown).into(),
                shown.or("spec.volumeAttributesClassName", "<unset>"),
                shown.text("status.reason").into(),
                age,
                shown.or("spec.volumeMode", "<unset>"),
            ]
        }
        ("", "persistentvolumeclaims") => {
            let is_bound = !shown.text("spec.volumeName").is_empty();
            vec![
                name,
                phase(),
                shown.text("spec.volumeName").into(),
                if is_bound { shown.or("status.capacity.storage", "0") } else { "".into() },
                if is_bound { access_modes(shown, "status.accessModes").into() } else { "".into() },
                class(shown).into(),
                shown.or("spec.volumeAttributesClassName", "<unset>"),
                age,
                shown.or("spec.volumeMode", "<unset>"),
            ]
        }
        ("storage.k8s.io", "storageclasses") => {
            let is_default = default_name.is_some() && default_name == shown.at("metadata.name").as_str();
            let mark = if is_default { " (default)" } else { "" };
            vec![
                format!("{}{mark}", shown.text("metadata.name")).into(),
                shown.text("provisioner").into(),
                shown.or("reclaimPolicy", "Delete"),
                shown.or("volumeBindingMode", "Immediate"),
                flag("allowVolumeExpansion", false),
                age,
            ]
        }
        ("storage.k8s.io", "volumeattributesclasses") => vec![name, shown.text("driverName").into(), age],
        ("storage.k8s.io", "volumeattachments") => vec![
            name,
            shown.text("spec.attacher").into(),
            shown.text("spec.source.persistentVolumeName").into(),
            shown.text("spec.nodeName").into(),
            flag("status.attached", false),
            age,
        ],
        ("storage.k8s.io", "csinodes") => vec![name, shown.count("spec.drivers").into(), age],
        ("storage.k8s.io", "csidrivers") => {
            let requests = shown.at("spec.tokenRequests").as_array();
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
                none_if_empty(joined(shown.list("spec.volumeLifecycleModes").iter(), ",")),
                age,
            ]
        }
        _ => return None,
    })
}

/// Returns the storage class. The annotation is older than the field, and takes precedence.
fn class<'a>(shown: &Shown<'a>) -> &'a str {
    let annotation = shown.at("metadata.annotations")["volume.beta.kubernetes.io/storage-class"].as_str();
    annotation.unwrap_or_else(|| shown.text("spec.storageClassName"))
}

/// Returns the access modes, without duplicates and in a fixed order.
fn access_modes(shown: &Shown<'_>, path: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = shown.list(path);
    let shorts =
        SHORT.iter().filter(|(mode, _)| modes.iter().any(|given| given == mode)).map(|(_, short)| *short);
    shorts.collect::<Vec<_>>().join(",")
}
