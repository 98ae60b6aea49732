//! Persistent volumes.

use serde_json::{Value, json};

use super::{
    super::{
        node_selector::{self, NODE_SELECTOR},
        row::{CLUSTER, StrategyRow},
    },
    add_finalizer,
    source::{self, SOURCES},
};
use crate::strategy::{
    cursor::{Cursor, Errors, moved},
    edit::{
        self,
        DefaultValue::{EmptyObject, Str},
    },
    names, quantity,
    quantity::Quantity,
    table::{self, Rule, RuleTable},
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(in super::super) const PERSISTENT_VOLUME: StrategyRow = StrategyRow {
    delete_returns_object: true,
    status: Some(|| Some(json!({"phase": "Pending"}))),
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "status", EmptyObject),
                ("status", "phase", Str("Pending")),
                ("spec", "persistentVolumeReclaimPolicy", Str("Retain")),
                ("spec", "volumeMode", Str("Filesystem")),
            ],
        );
        source::defaults(object, "spec");
        edit::each(object, "spec.capacity", &mut quantity::canonicalize);
    },
    prepare_create: |object| add_finalizer(object, "kubernetes.io/pv-protection"),
    set_request_fields: |part, object, old, context| {
        use crate::strategy::Part;
        let before = old.and_then(|old| old.get("status"));
        let phase = |status: Option<&Value>| status.and_then(|status| status.get("phase")).cloned();
        let time = |status: Option<&Value>| {
            let time = status.and_then(|status| status.get("lastPhaseTransitionTime")).cloned();
            time.filter(|time| !time.is_null())
        };
        let now = object.get("status");
        let stamped = match part {
            Part::Main if old.is_none() => Some(context.now.into()),
            Part::Subresource("status") if phase(before) == phase(now) => {
                time(now).is_none().then(|| time(before)).flatten()
            }
            Part::Subresource("status") => {
                (time(now).is_none() || time(now) == time(before)).then(|| context.now.into())
            }
            _ => None,
        };
        if let (Some(time), Some(status)) = (stamped, edit::object(object, "status")) {
            status.insert("lastPhaseTransitionTime".to_owned(), time);
        }
    },
    validate: |object, errors| {
        let metadata = object.at("metadata");
        let name = metadata.at("name");
        check(&object.at("spec"), name.text(), errors);
        mount_options(object, errors);
    },
    validate_update: update,
    warnings: |object, _| warnings(&Cursor::root(object)),
    ..CLUSTER
};

/// Checks the access modes of a volume or a claim.
pub(super) fn access_modes(spec: &Cursor<'_>, detail: &str, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.missing(detail));
    }
    for mode in modes.items() {
        if !MODES.contains(&mode.text()) {
            let mut error = modes.unsupported(&MODES);
            error.bad_value = Some(mode.value.clone());
            errors.push(error);
        }
    }
    let has_pod = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    let has_other =
        modes.items().any(|mode| mode.text() != "ReadWriteOncePod" && MODES.contains(&mode.text()));
    if has_pod && has_other {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

const SPEC: RuleTable = &[
    ("persistentVolumeReclaimPolicy", &[Rule::OneOf(&["Delete", "Recycle", "Retain"])]),
    (
        "nodeAffinity",
        &[Rule::Pointer(&[(
            "required",
            &[Rule::Present("must specify required node constraints"), Rule::Struct(NODE_SELECTOR)],
        )])],
    ),
];

const SPEC_AFTER_SOURCE: RuleTable = &[
    ("storageClassName", &[Rule::Format(names::dns_subdomain)]),
    ("volumeMode", &[Rule::Enum(&["Block", "Filesystem"])]),
    (
        "volumeAttributesClassName",
        &[Rule::Check(|name, errors| {
            if name.is_set() && name.is_empty() {
                errors.push(name.missing("an empty string is disallowed"));
            }
            name.format(names::dns_subdomain, errors);
        })],
    ),
];

fn check(spec: &Cursor<'_>, name: &str, errors: &mut Errors) {
    access_modes(spec, "", errors);
    let capacity = spec.at("capacity");
    if capacity.is_empty() {
        errors.push(capacity.missing(""));
    }
    if !capacity.key("storage").is_set() || capacity.entries().count() > 1 {
        let mut error = capacity.unsupported(&["storage"]);
        error.bad_value = Some(capacity.value.clone());
        errors.push(error);
    }
    for (_, amount) in capacity.entries() {
        let quantity = Quantity::from_value(amount.value);
        if quantity.is_some_and(Quantity::is_negative) {
            errors.push(amount.invalid("must be a valid resource quantity"));
        }
        if quantity.is_some_and(|quantity| quantity.is_negative() || quantity.is_zero()) {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
    table::check(SPEC, spec, errors);
    source::check(spec, name, errors);
    let host_path = spec.at("hostPath");
    let path = host_path.at("path").text();
    let is_root = path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "."));
    if is_root && spec.at("persistentVolumeReclaimPolicy").text() == "Recycle" {
        errors.push(
            spec.at("persistentVolumeReclaimPolicy")
                .forbidden("may not be 'recycle' for a hostPath mount of '/'"),
        );
    }
    table::check(SPEC_AFTER_SOURCE, spec, errors);
    if spec.at("volumeAttributesClassName").is_set() && !spec.at("csi").is_set() {
        errors.push(spec.at("csi").missing("has to be specified when using volumeAttributesClassName"));
    }
}

const INLINE: RuleTable = &[
    ("claimRef", &[Rule::Absent("may not be specified in the context of inline volumes")]),
    ("capacity", &[Rule::Forbidden("may not be specified in the context of inline volumes")]),
    ("csi", &[Rule::Present("has to be specified in the context of inline volumes")]),
];

/// Checks the inline volume spec of an attachment.
pub(super) fn check_inline(spec: &Cursor<'_>, errors: &mut Errors) {
    let only = |member: &str, expected: &str, detail: &str, errors: &mut Errors| {
        let at = spec.at(member);
        if !at.is_empty() && at.text() != expected {
            errors.push(at.forbidden(detail));
        }
    };
    table::check(INLINE, spec, errors);
    access_modes(spec, "", errors);
    only(
        "persistentVolumeReclaimPolicy",
        "Retain",
        "may only be Retain in the context of inline volumes",
        errors,
    );
    if spec.at("nodeAffinity").is_set() {
        errors
            .push(spec.at("nodeAffinity").forbidden("may not be specified in the context of inline volumes"));
    }
    source::check(spec, "", errors);
    if !spec.at("storageClassName").is_empty() {
        errors.push(
            spec.at("storageClassName").forbidden("may not be specified in the context of inline volumes"),
        );
    }
    only(
        "volumeMode",
        "Filesystem",
        "may not specify volumeMode other than Filesystem in the context of inline volumes",
        errors,
    );
}

/// The sources that support mount options.
const MOUNTABLE: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

fn mount_options(object: &Cursor<'_>, errors: &mut Errors) {
    let (spec, metadata) = (object.at("spec"), object.at("metadata"));
    let annotations = metadata.at("annotations");
    let supports_mount_options = MOUNTABLE.iter().any(|source| spec.at(source).is_set());
    if !supports_mount_options && annotations.key(MOUNT_OPTIONS).is_set() {
        errors.push(
            annotations.at(MOUNT_OPTIONS).forbidden("may not specify mount options for this volume type"),
        );
    }
}

fn update(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old) = (object.at("spec"), old.at("spec"));
    let sources = |spec: &Cursor<'_>| {
        SOURCES.iter().map(|source| spec.at(source.member).value.clone()).collect::<Vec<Value>>()
    };
    let (mut now, before) = (sources(&spec), sources(&old));
    // A secret for expanding the volume may be added later.
    let reference = "controllerExpandSecretRef";
    if old.at("csi").is_set()
        && !old.at("csi").at(reference).is_set()
        && let Some(Value::Object(csi)) = now.last_mut()
    {
        csi.remove(reference);
    }
    if now != before {
        errors.push(
            spec.at("persistentvolumesource")
                .forbidden("spec.persistentvolumesource is immutable after creation"),
        );
    }
    moved("spec.", "", errors, |errors| {
        spec.at("volumeMode").immutable(&old.at("volumeMode"), errors);
        if old.at("nodeAffinity").is_set() && spec.at("nodeAffinity").value != old.at("nodeAffinity").value {
            errors.push(
                spec.at("nodeAffinity")
                    .invalid("field is immutable, except for updating from beta label to GA"),
            );
        }
    });
    let class = spec.at("volumeAttributesClassName");
    if old.at("volumeAttributesClassName").is_set() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// The sources that no longer work, with the versions.
const REMOVED: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn warnings(object: &Cursor<'_>) -> Vec<String> {
    let (spec, metadata) = (object.at("spec"), object.at("metadata"));
    let annotations = metadata.at("annotations");
    let mut warnings = Vec::new();
    for (name, advice) in [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ] {
        if annotations.key(name).is_set() {
            warnings.push(format!("metadata.annotations[{name}]: {advice}"));
        }
    }
    if spec.at("persistentVolumeReclaimPolicy").text() == "Recycle" {
        warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    let path = "nodeAffinity.required.nodeSelectorTerms[].matchExpressions";
    table::visit(&spec, None, path, &mut |expressions, _| {
        warnings.extend(node_selector::expression_warnings(expressions));
    });
    for (source, reported, advice) in REMOVED {
        if spec.at(source).is_set() {
            warnings.push(format!("spec.{reported}: {advice}"));
        }
    }
    warnings
}
