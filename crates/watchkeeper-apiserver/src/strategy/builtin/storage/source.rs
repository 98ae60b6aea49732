//! Volume sources.

use serde_json::Value;

use super::{
    super::volume_source::{azure_uri, fibre_channel, flex_options, flocker, host_ports, iscsi_name},
    DRIVER_NAME,
};
use crate::strategy::{
    cursor::{Cursor, Errors, moved},
    edit::{
        self,
        DefaultValue::{Bool, Str},
    },
    names,
    table::{self, Rule, RuleTable},
};

/// Sets the defaults of the sources of the volume at `path`.
pub(super) fn defaults(object: &mut Value, path: &str) {
    const DEFAULTS: &[(&str, &[edit::Fill])] = &[
        ("hostPath", &[("", "type", Str(""))]),
        (
            "rbd",
            &[
                ("", "pool", Str("rbd")),
                ("", "user", Str("admin")),
                ("", "keyring", Str("/etc/ceph/keyring")),
            ],
        ),
        ("iscsi", &[("", "iscsiInterface", Str("default"))]),
        (
            "azureDisk",
            &[
                ("", "cachingMode", Str("ReadWrite")),
                ("", "fsType", Str("ext4")),
                ("", "readOnly", Bool(false)),
                ("", "kind", Str("Shared")),
            ],
        ),
        ("scaleIO", &[("", "storageMode", Str("ThinProvisioned")), ("", "fsType", Str("xfs"))]),
    ];
    for (source, fills) in DEFAULTS {
        edit::each(object, &format!("{path}.{source}"), &mut |members| {
            for &(_, member, literal) in *fills {
                edit::fill(members, member, literal);
            }
        });
    }
}

/// A volume source: its member, the location of the error for a second source, the location of its errors, its rules.
pub(super) struct VolumeSource {
    pub(super) member: &'static str,
    second: &'static str,
    inside: &'static str,
    rules: RuleTable,
}

const fn source(member: &'static str, rules: RuleTable) -> VolumeSource {
    VolumeSource { member, second: member, inside: member, rules }
}

const SECRET: RuleTable = &[("name", &[Rule::Required]), ("namespace", &[Rule::Required])];
const CSI_SECRET: RuleTable = &[
    ("name", &[Rule::Required, Rule::Format(names::dns_subdomain)]),
    ("namespace", &[Rule::Required, Rule::Format(names::dns_label)]),
];
const PATH: RuleTable = &[("path", &[Rule::Required, Rule::Check(no_parent_references)])];
const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// The sources in the order of checking.
pub(super) const SOURCES: [VolumeSource; 22] = [
    source(
        "hostPath",
        &[
            ("path", &[Rule::Required, Rule::Check(no_parent_references)]),
            ("type", &[Rule::OneOf(&HOST_PATH_TYPES)]),
        ],
    ),
    VolumeSource {
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
    VolumeSource {
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

const ISCSI: RuleTable = &[
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

fn no_parent_references(path: &Cursor<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

fn set_namespace(namespace: &Cursor<'_>, errors: &mut Errors) {
    if namespace.is_set() && namespace.is_empty() {
        errors.push(namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name"));
    }
    namespace.format(names::dns_label, errors);
}

/// Checks the source of a volume. Only the first source is checked in detail; each further one is an error.
pub(super) fn check(spec: &Cursor<'_>, name: &str, errors: &mut Errors) {
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
