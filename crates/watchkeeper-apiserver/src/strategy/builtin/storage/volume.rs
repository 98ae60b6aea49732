//! Persistent volumes.

use serde_json::{Value, json};

use super::{
    super::{
        node_selector::{self, NODE_SELECTOR},
        row::{CLUSTER, Row},
    },
    DRIVER_NAME, add_finalizer,
};
use crate::strategy::{
    at::{At, Errors, moved},
    edit::{
        self,
        Lit::{B, O, S},
    },
    names, quantity,
    quantity::Quantity,
    table::{self, Rule, Table},
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(in super::super) const PERSISTENT_VOLUME: Row = Row {
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
            ],
        );
        source_defaults(object, "spec");
        edit::each(object, "spec.capacity", &mut quantity::canonicalize);
    },
    prepare_create: |object| add_finalizer(object, "kubernetes.io/pv-protection"),
    stamp: |part, object, old, context| {
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
    warnings: |object, _| warnings(&At::root(object)),
    ..CLUSTER
};

/// Fills in defaults of the sources of the volume at `path`.
pub(super) fn source_defaults(object: &mut Value, path: &str) {
    const DEFAULTS: &[(&str, &[edit::Fill])] = &[
        ("hostPath", &[("", "type", S(""))]),
        ("rbd", &[("", "pool", S("rbd")), ("", "user", S("admin")), ("", "keyring", S("/etc/ceph/keyring"))]),
        ("iscsi", &[("", "iscsiInterface", S("default"))]),
        (
            "azureDisk",
            &[
                ("", "cachingMode", S("ReadWrite")),
                ("", "fsType", S("ext4")),
                ("", "readOnly", B(false)),
                ("", "kind", S("Shared")),
            ],
        ),
        ("scaleIO", &[("", "storageMode", S("ThinProvisioned")), ("", "fsType", S("xfs"))]),
    ];
    for (source, fills) in DEFAULTS {
        edit::each(object, &format!("{path}.{source}"), &mut |members| {
            for &(_, member, literal) in *fills {
                edit::fill(members, member, literal);
            }
        });
    }
}

/// A source of volumes: its member, where a second source is reported, where errors in it are reported, its rules.
struct Source {
    member: &'static str,
    second: &'static str,
    inside: &'static str,
    rules: Table,
}

const fn source(member: &'static str, rules: Table) -> Source {
    Source { member, second: member, inside: member, rules }
}

const SECRET: Table = &[("name", &[Rule::Required]), ("namespace", &[Rule::Required])];
const CSI_SECRET: Table = &[
    ("name", &[Rule::Required, Rule::Format(names::dns_subdomain)]),
    ("namespace", &[Rule::Required, Rule::Format(names::dns_label)]),
];
const PATH: Table = &[("path", &[Rule::Required, Rule::Check(no_backsteps)])];
const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// Sources in the order in which they are checked.
const SOURCES: [Source; 22] = [
    source(
        "hostPath",
        &[("path", &[Rule::Required, Rule::Check(no_backsteps)]), ("type", &[Rule::OneOf(&HOST_PATH_TYPES)])],
    ),
    Source {
        member: "gcePersistentDisk",
        second: "gcePersistentDisk",
        inside: "persistentDisk",
        rules: &[("pdName", &[Rule::Required]), ("partition", &[Rule::Between(0, 255)])],
    },
    source(
        "awsElasticBlockStore",
        &[("volumeID", &[Rule::Required]), ("partition", &[Rule::Between(0, 255)])],
    ),
    source(
        "glusterfs",
        &[
            ("endpoints", &[Rule::Required]),
            ("path", &[Rule::Required]),
            ("endpointsNamespace", &[Rule::Check(set_namespace)]),
        ],
    ),
    source("flocker", &[("", &[Rule::Check(flocker)])]),
    source(
        "nfs",
        &[
            ("server", &[Rule::Required]),
            (
                "path",
                &[Rule::Check(|path, errors| {
                    path.required(errors);
                    if !path.text().starts_with('/') {
                        errors.push(path.invalid("must be an absolute path"));
                    }
                })],
            ),
        ],
    ),
    source("rbd", &[("monitors", &[Rule::Required]), ("image", &[Rule::Required])]),
    source(
        "quobyte",
        &[("registry", &[Rule::Required, Rule::Check(host_ports)]), ("volume", &[Rule::Required])],
    ),
    Source {
        member: "cephfs",
        second: "cephFS",
        inside: "cephfs",
        rules: &[("monitors", &[Rule::Required])],
    },
    source("iscsi", ISCSI),
    source("cinder", &[("volumeID", &[Rule::Required]), ("secretRef", &[Rule::Pointer(SECRET)])]),
    source("fc", &[("", &[Rule::Check(fibre_channel)])]),
    source("flexVolume", &[("driver", &[Rule::Required]), ("options", &[Rule::Check(flex_options)])]),
    source(
        "azureFile",
        &[
            ("secretName", &[Rule::Required]),
            ("shareName", &[Rule::Required]),
            (
                "secretNamespace",
                &[Rule::Check(|namespace, errors| {
                    if namespace.is_set() {
                        namespace.required(errors);
                    }
                })],
            ),
        ],
    ),
    source("vsphereVolume", &[("volumePath", &[Rule::Required])]),
    source("photonPersistentDisk", &[("pdID", &[Rule::Required])]),
    source("portworxVolume", &[("volumeID", &[Rule::Required])]),
    source(
        "azureDisk",
        &[
            ("diskName", &[Rule::Required]),
            ("diskURI", &[Rule::Required]),
            ("cachingMode", &[Rule::OneOf(&["None", "ReadOnly", "ReadWrite"])]),
            ("kind", &[Rule::OneOf(&["Dedicated", "Managed", "Shared"])]),
            ("", &[Rule::Check(azure_uri)]),
        ],
    ),
    source(
        "scaleIO",
        &[("gateway", &[Rule::Required]), ("system", &[Rule::Required]), ("volumeName", &[Rule::Required])],
    ),
    source("local", PATH),
    source(
        "storageos",
        &[
            ("volumeName", &[Rule::Required, Rule::Format(names::dns_label)]),
            ("volumeNamespace", &[Rule::Format(names::dns_label)]),
            ("secretRef", &[Rule::Pointer(SECRET)]),
        ],
    ),
    source(
        "csi",
        &[
            ("driver", DRIVER_NAME),
            ("volumeHandle", &[Rule::Required]),
            (
                "controllerPublishSecretRef|controllerExpandSecretRef|nodePublishSecretRef|nodeExpandSecretRef",
                &[Rule::Pointer(CSI_SECRET)],
            ),
        ],
    ),
];

const ISCSI: Table = &[
    ("targetPortal", &[Rule::Required]),
    ("iqn", &[Rule::Required, Rule::Check(iscsi_name)]),
    ("lun", &[Rule::Between(0, 255)]),
    (
        "",
        &[Rule::Check(|iscsi, errors| {
            let needs_secret =
                iscsi.at("chapAuthDiscovery").is_true() || iscsi.at("chapAuthSession").is_true();
            if needs_secret && !iscsi.at("secretRef").is_set() {
                errors.push(iscsi.at("secretRef").missing(""));
            }
        })],
    ),
    ("secretRef", &[Rule::Pointer(&[("name", &[Rule::Required])])]),
    (
        "initiatorName",
        &[Rule::Check(|name, errors| {
            if name.is_set() {
                let path = name.path();
                moved(&path, &path.to_lowercase(), errors, |errors| iscsi_name(name, errors));
            }
        })],
    ),
];

fn no_backsteps(path: &At<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

fn set_namespace(namespace: &At<'_>, errors: &mut Errors) {
    if namespace.is_set() && namespace.is_empty() {
        errors.push(namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name"));
    }
    namespace.format(names::dns_label, errors);
}

fn flocker(flocker: &At<'_>, errors: &mut Errors) {
    let (name, uuid) = (flocker.at("datasetName"), flocker.at("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => errors.push(flocker.missing("one of datasetName and datasetUUID is required")),
        (false, false) => {
            errors.push(flocker.invalid("datasetName and datasetUUID can not be specified simultaneously"));
        }
        _ => {}
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

fn host_ports(registry: &At<'_>, errors: &mut Errors) {
    for pair in registry.text().split(',') {
        if pair.rsplit_once(':').is_none_or(|(host, _)| host.contains(':') && !host.ends_with(']')) {
            errors.push(registry.invalid("must be a host:port pair or multiple pairs separated by commas"));
        }
    }
}

/// An iSCSI name: `iqn.2001-04.com.example:x`, `eui.` with 16 or `naa.` with 32 hexadecimal digits.
fn iscsi_name(name: &At<'_>, errors: &mut Errors) {
    let text = name.text();
    let is_hex = |digits: &str, length: usize| {
        digits.len() == length
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_lowercase())
    };
    let is_dated = |rest: &str| {
        let (date, domain) = (rest.get(..7).unwrap_or_default(), rest.get(7..).unwrap_or_default());
        let is_date = date.bytes().enumerate().all(|(place, byte)| match place {
            4 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        is_date
            && !date.is_empty()
            && domain.starts_with('.')
            && domain.contains(':')
            && domain.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let fits = if let Some(rest) = text.strip_prefix("iqn.") {
        is_dated(rest)
    } else if let Some(digits) = text.strip_prefix("eui.") {
        is_hex(digits, 16)
    } else if let Some(digits) = text.strip_prefix("naa.") {
        is_hex(digits, 32)
    } else {
        false
    };
    if !fits {
        errors.push(name.invalid("must be valid format"));
    }
}

fn fibre_channel(channel: &At<'_>, errors: &mut Errors) {
    let (targets, ids, lun) = (channel.at("targetWWNs"), channel.at("wwids"), channel.at("lun"));
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            errors.push(targets.missing("must specify either targetWWNs or wwids, but not both"));
        }
        (false, false) => {
            errors.push(targets.invalid("targetWWNs and wwids can not be specified simultaneously"));
        }
        _ => {}
    }
    if !targets.is_empty() {
        if lun.is_set() {
            lun.between(0, 255, errors);
        } else {
            errors.push(lun.missing("lun is required if targetWWNs is specified"));
        }
    }
}

fn flex_options(options: &At<'_>, errors: &mut Errors) {
    for (name, option) in options.entries() {
        let domain = format!(".{}", name.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let mut error = option.invalid("kubernetes.io and k8s.io namespaces are reserved");
            error.bad_value = Some(name.into());
            errors.push(error);
        }
    }
}

fn azure_uri(disk: &At<'_>, errors: &mut Errors) {
    let uri = disk.at("diskURI");
    if disk.at("kind").text() == "Managed" {
        if !uri.text().starts_with("/subscriptions/") {
            errors.push(uri.unsupported(&["/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"]));
        }
    } else if !uri.text().starts_with("https://") {
        errors.push(
            uri.unsupported(&[
                "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
            ]),
        );
    }
}

/// Checks the access modes of a volume or a claim.
pub(super) fn access_modes(spec: &At<'_>, detail: &str, errors: &mut Errors) {
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

const SPEC: Table = &[
    ("persistentVolumeReclaimPolicy", &[Rule::OneOf(&["Delete", "Recycle", "Retain"])]),
    (
        "nodeAffinity",
        &[Rule::Pointer(&[(
            "required",
            &[Rule::Present("must specify required node constraints"), Rule::Struct(NODE_SELECTOR)],
        )])],
    ),
];

const SPEC_AFTER_SOURCE: Table = &[
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

fn check(spec: &At<'_>, name: &str, errors: &mut Errors) {
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
    check_source(spec, name, errors);
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

/// Checks the one source a volume has. Rules of further sources are not checked: each is one too many.
fn check_source(spec: &At<'_>, name: &str, errors: &mut Errors) {
    let mut has_source = false;
    for source in &SOURCES {
        let at = spec.at(source.member);
        if !at.is_set() {
            continue;
        }
        if has_source && source.member != "flexVolume" {
            errors.push(spec.at(source.second).forbidden("may not specify more than 1 volume type"));
            continue;
        }
        has_source = true;
        moved(&at.path(), &spec.at(source.inside).path(), errors, |errors| {
            table::check(source.rules, &at, errors);
        });
        match source.member {
            "local" if !spec.at("nodeAffinity").is_set() => {
                errors.push(spec.at("nodeAffinity").missing("Local volume requires node affinity"));
            }
            "iscsi" => {
                let portal = at.at("targetPortal");
                if at.at("initiatorName").is_set() && name.len() + 1 + portal.text().len() > 64 {
                    let mut error = portal.invalid("Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.");
                    error.path = at.at("targetportal").path();
                    errors.push(error);
                }
            }
            _ => {}
        }
    }
    if !has_source {
        errors.push(spec.missing("must specify a volume type"));
    }
}

const INLINE: Table = &[
    ("claimRef", &[Rule::Absent("may not be specified in the context of inline volumes")]),
    ("capacity", &[Rule::Forbidden("may not be specified in the context of inline volumes")]),
    ("csi", &[Rule::Present("has to be specified in the context of inline volumes")]),
];

/// Checks the spec of a volume that an attachment has inline.
pub(super) fn check_inline(spec: &At<'_>, errors: &mut Errors) {
    let only = |member: &str, wanted: &str, detail: &str, errors: &mut Errors| {
        let at = spec.at(member);
        if !at.is_empty() && at.text() != wanted {
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
    check_source(spec, "", errors);
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

/// Sources that take mount options.
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

fn mount_options(object: &At<'_>, errors: &mut Errors) {
    let (spec, metadata) = (object.at("spec"), object.at("metadata"));
    let annotations = metadata.at("annotations");
    let takes_options = MOUNTABLE.iter().any(|source| spec.at(source).is_set());
    if !takes_options && annotations.key(MOUNT_OPTIONS).is_set() {
        errors.push(
            annotations.at(MOUNT_OPTIONS).forbidden("may not specify mount options for this volume type"),
        );
    }
}

fn update(object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, old) = (object.at("spec"), old.at("spec"));
    let sources = |spec: &At<'_>| {
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

/// Sources that no longer work, with the versions.
const REMOVED: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn warnings(object: &At<'_>) -> Vec<String> {
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
    for (source, shown, advice) in REMOVED {
        if spec.at(source).is_set() {
            warnings.push(format!("spec.{shown}: {advice}"));
        }
    }
    warnings
}
