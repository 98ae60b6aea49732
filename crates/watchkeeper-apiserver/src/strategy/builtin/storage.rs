//! Volumes, claims of them and their classes.

use serde_json::{Value, json};

use super::{
    pod,
    row::{CLUSTER, PLAIN, Row},
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self,
        Lit::{B, O, S, Z},
    },
    names, quantity,
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// The row of a kind of the group `storage.k8s.io`.
pub(super) fn find(kind: &str) -> Option<Row> {
    Some(match kind {
        "StorageClass" => STORAGE_CLASS,
        "CSIDriver" => CSI_DRIVER,
        "CSINode" => Row {
            takes_unconditional_update: false,
            delete_returns_object: true,
            zeros: &[("", "spec", O), ("spec", "drivers", Z)],
            ..CLUSTER
        },
        "CSIStorageCapacity" => Row {
            takes_unconditional_update: false,
            validate: |object, errors| {
                object.at("storageClassName").required(errors);
            },
            validate_update: |object, old, errors| {
                for member in ["nodeTopology", "storageClassName"] {
                    object.at(member).immutable(&old.at(member), errors);
                }
            },
            ..PLAIN
        },
        "VolumeAttachment" => VOLUME_ATTACHMENT,
        "VolumeAttributesClass" => Row { delete_returns_object: true, ..CLUSTER },
        _ => return None,
    })
}

pub(super) const PERSISTENT_VOLUME: Row = Row {
    delete_returns_object: true,
    status: Some(|| Some(json!({"phase": "Pending"}))),
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "status", O),
                ("status", "phase", S("Pending")),
                ("spec", "persistentVolumeReclaimPolicy", S("Retain")),
                ("spec", "volumeMode", S("Filesystem")),
                ("spec.hostPath", "type", S("")),
            ],
        );
        edit::each(object, "spec.capacity", &mut quantity::canonicalize);
    },
    prepare_create: |object| add_finalizer(object, "kubernetes.io/pv-protection"),
    validate: validate_volume,
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let source = |spec: &At<'_>| {
            let members = spec.value.as_object().into_iter().flatten();
            members
                .filter(|(name, _)| !COMMON.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<edit::Members>()
        };
        let (new_source, old_source) = (source(&spec), source(&old));
        if new_source != old_source {
            errors.push(
                spec.at("persistentvolumesource")
                    .forbidden("spec.persistentvolumesource is immutable after creation"),
            );
        }
        spec.at("volumeMode").immutable(&old.at("volumeMode"), errors);
    },
    ..CLUSTER
};

pub(super) const PERSISTENT_VOLUME_CLAIM: Row = Row {
    delete_returns_object: true,
    status: Some(|| Some(json!({"phase": "Pending"}))),
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "status", O),
                ("status", "phase", S("Pending")),
                ("spec", "volumeMode", S("Filesystem")),
                ("spec", "resources", O),
                ("status.conditions[]", "lastProbeTime", Z),
                ("status.conditions[]", "lastTransitionTime", Z),
            ],
        );
        edit::each(object, "spec.resources.requests|limits", &mut quantity::canonicalize);
        edit::each(object, "status.capacity|allocatedResources", &mut quantity::canonicalize);
    },
    prepare_create: |object| add_finalizer(object, "kubernetes.io/pvc-protection"),
    validate: validate_claim,
    validate_update: update_claim,
    ..PLAIN
};

const STORAGE_CLASS: Row = Row {
    delete_returns_object: true,
    defaults: |object| {
        edit::fill_all(
            object,
            &[("", "reclaimPolicy", S("Delete")), ("", "volumeBindingMode", S("Immediate"))],
        );
    },
    validate: |object, errors| {
        let provisioner = object.at("provisioner");
        if provisioner.required(errors) {
            let lower = provisioner.text().to_lowercase();
            errors.extend(names::qualified(&lower).into_iter().map(|detail| provisioner.invalid(detail)));
        }
        object.at("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
        object.at("volumeBindingMode").required_one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    },
    validate_update: |object, old, errors| {
        for member in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            let (new, old) = (object.at(member), old.at(member));
            if new.value != old.value && !(new.is_empty() && old.is_empty()) {
                errors.push(new.forbidden(format!("updates to {member} are forbidden.")));
            }
        }
    },
    ..CLUSTER
};

const CSI_DRIVER: Row = Row {
    takes_unconditional_update: false,
    delete_returns_object: true,
    generation: &["spec"],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "spec", O),
                ("spec", "attachRequired", B(true)),
                ("spec", "podInfoOnMount", B(false)),
                ("spec", "storageCapacity", B(false)),
                ("spec", "fsGroupPolicy", S("ReadWriteOnceWithFSType")),
                ("spec", "requiresRepublish", B(false)),
                ("spec", "seLinuxMount", B(false)),
            ],
        );
        edit::each(object, "spec", &mut |spec| {
            let has_modes = spec
                .get("volumeLifecycleModes")
                .and_then(Value::as_array)
                .is_some_and(|modes| !modes.is_empty());
            if !has_modes {
                spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
            }
        });
    },
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        for member in ["attachRequired", "volumeLifecycleModes"] {
            spec.at(member).immutable(&old.at(member), errors);
        }
    },
    ..CLUSTER
};

const VOLUME_ATTACHMENT: Row = Row {
    takes_unconditional_update: false,
    delete_returns_object: true,
    generation: &["spec"],
    status: Some(|| Some(json!({"attached": false}))),
    validate: |object, errors| {
        let spec = object.at("spec");
        spec.at("attacher").required(errors);
        spec.at("nodeName").required(errors);
    },
    validate_update: |object, old, errors| object.at("spec").immutable(&old.at("spec"), errors),
    ..CLUSTER
};

/// Members of the spec of a volume that are not its source.
const COMMON: [&str; 9] = [
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
];

/// Held until nobody uses it any more.
fn add_finalizer(object: &mut Value, name: &str) {
    let Some(metadata) = edit::object(object, "metadata") else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|finalizer| finalizer == name)
    {
        finalizers.push(name.into());
    }
}

fn access_modes(spec: &At<'_>, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.missing("at least 1 access mode is required"));
    }
    for mode in modes.items() {
        if !MODES.contains(&mode.text()) {
            let mut error = modes.unsupported(&MODES);
            error.bad_value = Some(mode.value.clone());
            errors.push(error);
        }
    }
    spec.at("volumeMode").one_of(&["Block", "Filesystem"], errors);
    spec.at("storageClassName").format(names::dns_subdomain, errors);
}

fn validate_volume(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    access_modes(&spec, errors);
    let capacity = spec.at("capacity");
    if capacity.is_empty() {
        errors.push(capacity.missing(""));
    } else if !capacity.key("storage").is_set() || capacity.entries().count() > 1 {
        errors.push(capacity.unsupported(&["storage"]));
    }
    for (_, amount) in capacity.entries() {
        pod::amount(&amount, errors);
    }
    spec.at("persistentVolumeReclaimPolicy").one_of(&["Delete", "Recycle", "Retain"], errors);
    let sources = spec.value.as_object().into_iter().flatten();
    let mut sources = sources.filter(|(name, value)| !COMMON.contains(&name.as_str()) && !value.is_null());
    if sources.next().is_none() {
        errors.push(spec.missing("must specify a volume type"));
    }
    for (name, _) in sources {
        errors.push(spec.at(name).forbidden("may not specify more than 1 volume type"));
    }
    let path = spec.at("hostPath");
    if path.is_set() {
        path.at("path").required(errors);
    }
}

fn validate_claim(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    access_modes(&spec, errors);
    crate::strategy::metadata::label_selector(&spec.at("selector"), errors);
    let resources = spec.at("resources");
    let requests = resources.at("requests");
    let storage = requests.key("storage");
    if storage.is_set() {
        let is_nothing = quantity::Quantity::from_value(storage.value)
            .is_some_and(|amount| amount.is_zero() || amount.is_negative());
        if is_nothing {
            errors.push(storage.invalid("must be greater than zero"));
        }
    } else {
        errors.push(storage.missing(""));
    }
}

fn update_claim(object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let mut compared = spec.value.clone();
    let is_bound = old.at("status").at("phase").text() == "Bound";
    let amount =
        |spec: &Value| spec.pointer("/resources/requests/storage").and_then(quantity::Quantity::from_value);
    let is_smaller =
        matches!((amount(spec.value), amount(old_spec.value)), (Some(new), Some(old)) if new < old);
    // A claim may be bound by its controller, and a bound one may grow.
    if old_spec.at("volumeName").is_empty() {
        edit::take_from(&mut compared, old_spec.value, "volumeName");
    }
    if old_spec.at("storageClassName").is_empty() {
        edit::take_from(&mut compared, old_spec.value, "storageClassName");
    }
    edit::take_from(&mut compared, old_spec.value, "volumeAttributesClassName");
    if is_bound {
        edit::take_from(&mut compared, old_spec.value, "resources");
    }
    if compared != *old_spec.value {
        errors.push(spec.forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    if is_smaller {
        let resources = spec.at("resources");
        let requests = resources.at("requests");
        errors.push(requests.at("storage").forbidden("field can not be less than status.capacity"));
    }
}
