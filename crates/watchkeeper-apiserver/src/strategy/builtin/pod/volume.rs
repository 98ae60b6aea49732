//! Rules of the volumes of a pod.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        claim,
        volume_source::{azure_uri, fibre_channel, flex_options, flocker, host_ports, iscsi_name},
    },
    container::Volume,
    projected,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    formats, metadata, names,
    quantity::Quantity,
    table::{
        self, FieldCondition,
        Rule::{
            Check, EnumIfSet, Format, InRange, MaxLength, OneOf, Pointer, Present, Required, Struct, When,
        },
        RuleTable,
    },
};

/// Checks the permission bits of a file.
pub(super) const FILE_MODE: fn(&Cursor<'_>, &mut Errors) = |mode, errors| {
    if mode.int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
};

/// The rules of a key of a config map or secret, with the path of its file.
pub(super) const KEY_TO_PATH: RuleTable = &[
    ("key", &[Required]),
    ("path", &[Required]),
    ("path", &[Format(formats::local_path)]),
    ("mode", &[Check(FILE_MODE)]),
];

/// The volume sources in the order of checking, with their rules.
const SOURCES: &[(&str, RuleTable)] = &[
    ("emptyDir", &[("sizeLimit", &[Check(size_limit)]), ("mode", &[Check(directory_mode)])]),
    (
        "hostPath",
        &[("path", &[Required, Format(formats::no_parent_references)]), ("", &[Check(host_path_type)])],
    ),
    ("gitRepo", &[("repository", &[Required]), ("directory", &[Format(formats::descending_path)])]),
    ("gcePersistentDisk", &[("", &[Check(gce_disk)])]),
    ("awsElasticBlockStore", &[("volumeID", &[Required]), ("partition", &[Check(partition)])]),
    (
        "secret",
        &[
            ("secretName", &[Required]),
            ("defaultMode", &[Check(FILE_MODE)]),
            ("items[]", &[Struct(KEY_TO_PATH)]),
        ],
    ),
    ("nfs", &[("server", &[Required]), ("path", &[Required]), ("path", &[Check(absolute)])]),
    (
        "iscsi",
        &[
            ("targetPortal", &[Required]),
            ("iqn", &[Required, Check(iscsi_name)]),
            ("lun", &[InRange(0, 255)]),
            (
                "",
                &[
                    When(FieldCondition::IsTrue("chapAuthDiscovery"), CHAP_SECRET),
                    When(FieldCondition::IsTrue("chapAuthSession"), CHAP_SECRET),
                ],
            ),
            ("", &[Check(initiator_name)]),
        ],
    ),
    ("glusterfs", &[("endpoints", &[Required]), ("path", &[Required])]),
    ("flocker", &[("", &[Check(flocker)])]),
    ("persistentVolumeClaim", &[("claimName", &[Required])]),
    ("rbd", &[("monitors", &[Required]), ("image", &[Required])]),
    ("cinder", &[("volumeID", &[Required]), ("secretRef", &[Pointer(&[("name", &[Required])])])]),
    ("cephfs", &[("monitors", &[Required])]),
    ("quobyte", &[("", &[Check(quobyte)]), ("volume", &[Required])]),
    ("downwardAPI", &[("defaultMode", &[Check(FILE_MODE)]), ("", &[Check(projected::downward_files)])]),
    ("fc", &[("", &[Check(fibre_channel)])]),
    ("flexVolume", &[("driver", &[Required]), ("options", &[Check(flex_options)])]),
    (
        "configMap",
        &[("name", &[Required]), ("defaultMode", &[Check(FILE_MODE)]), ("items[]", &[Struct(KEY_TO_PATH)])],
    ),
    ("azureFile", &[("secretName", &[Required]), ("shareName", &[Required])]),
    ("vsphereVolume", &[("volumePath", &[Required])]),
    ("photonPersistentDisk", &[("pdID", &[Required])]),
    ("portworxVolume", &[("volumeID", &[Required])]),
    (
        "azureDisk",
        &[
            ("diskName", &[Required]),
            ("diskURI", &[Required]),
            ("cachingMode", &[EnumIfSet(&["None", "ReadOnly", "ReadWrite"])]),
            ("kind", &[EnumIfSet(&["Dedicated", "Managed", "Shared"])]),
            ("", &[Check(azure_uri)]),
        ],
    ),
    (
        "storageos",
        &[
            ("volumeName", &[Required, Format(names::dns_label)]),
            ("volumeNamespace", &[Format(names::dns_label)]),
            ("secretRef", &[Pointer(&[("name", &[Required])])]),
        ],
    ),
    ("projected", &[("defaultMode", &[Check(FILE_MODE)]), ("", &[Check(projected::sources)])]),
    ("scaleIO", &[("gateway", &[Required]), ("system", &[Required]), ("volumeName", &[Required])]),
    (
        "csi",
        &[
            ("driver", &[Required, MaxLength(63), Format(names::caseless_subdomain)]),
            ("nodePublishSecretRef", &[Pointer(&[("name", &[Required])])]),
            ("", &[Check(publish_secret)]),
        ],
    ),
    (
        "ephemeral",
        &[(
            "volumeClaimTemplate",
            &[
                Present(""),
                Struct(&[
                    ("metadata", &[Check(metadata::of_template)]),
                    ("spec", &[Check(claim::claim_spec)]),
                ]),
            ],
        )],
    ),
    (
        "image",
        &[
            ("reference", &[Required]),
            ("pullPolicy", &[Required, OneOf(&["Always", "IfNotPresent", "Never"])]),
        ],
    ),
];

const CHAP_SECRET: RuleTable = &[("secretRef", &[Present("")])];

/// Checks the volumes of a pod named `pod` (empty for templates). Returns the valid ones.
pub(super) fn volumes(volumes: &Cursor<'_>, pod: &str, errors: &mut Errors) -> BTreeMap<String, Volume> {
    let claim_names: BTreeSet<String> = volumes
        .items()
        .filter(|volume| !pod.is_empty() && volume.at("ephemeral").is_set())
        .map(|volume| format!("{pod}-{}", volume.at("name").text()))
        .collect();
    let mut known = BTreeMap::new();
    for volume in volumes.items() {
        let before = errors.len();
        source(&volume, pod, errors);
        let name = volume.at("name");
        name.required_format(names::dns_label, errors);
        if known.contains_key(name.text()) {
            errors.push(name.duplicate());
        }
        if errors.len() == before {
            let is_claim = volume.at("persistentVolumeClaim").is_set() || volume.at("ephemeral").is_set();
            known.insert(name.text().to_owned(), Volume { is_claim, is_image: volume.at("image").is_set() });
        }
        let claim = volume.at("persistentVolumeClaim");
        let claim_name = claim.at("claimName");
        if claim.is_set() && claim_names.contains(claim_name.text()) {
            errors.push(
                claim_name.invalid("must not reference a PVC that gets created for an ephemeral volume"),
            );
        }
    }
    known
}

fn source(volume: &Cursor<'_>, pod: &str, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|(name, _)| volume.at(name).is_set());
    let Some((name, rules)) = given.next() else {
        errors.push(volume.missing("must specify a volume type"));
        return;
    };
    let of = volume.at(name);
    if *name == "gcePersistentDisk" {
        // Upstream uses another name for this source in paths.
        table::check(rules, &volume.named("persistentDisk", of.value), errors);
    } else {
        table::check(rules, &of, errors);
    }
    if *name == "ephemeral" && !pod.is_empty() && !volume.at("name").is_empty() {
        let name = volume.at("name");
        let claim = format!("{pod}-{}", name.text());
        errors.extend(
            names::dns_subdomain(&claim)
                .into_iter()
                .map(|detail| name.invalid(format!("PVC name {claim:?}: {detail}"))),
        );
    }
    for (other, _) in given {
        // Upstream spells two sources in its own way here.
        let spelled = match *other {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            other => other,
        };
        errors.push(volume.at(spelled).forbidden("may not specify more than 1 volume type"));
    }
}

fn size_limit(limit: &Cursor<'_>, errors: &mut Errors) {
    if Quantity::from_value(limit.value).is_some_and(Quantity::is_negative) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn directory_mode(mode: &Cursor<'_>, errors: &mut Errors) {
    if mode.int().is_some_and(|mode| !(0..=0o1777).contains(&mode)) {
        errors.push(mode.invalid("must be a number between 0 and 01777 (octal), both inclusive"));
    }
}

fn host_path_type(source: &Cursor<'_>, errors: &mut Errors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let kind = source.at("type");
    if !source.at("path").is_empty() && kind.is_set() && !TYPES.contains(&kind.text()) {
        errors.push(kind.unsupported(&TYPES));
    }
}

fn gce_disk(disk: &Cursor<'_>, errors: &mut Errors) {
    disk.at("pdName").required(errors);
    partition(&disk.at("partition"), errors);
}

fn partition(number: &Cursor<'_>, errors: &mut Errors) {
    number.between(0, 255, errors);
}

fn absolute(path: &Cursor<'_>, errors: &mut Errors) {
    errors.extend(formats::absolute_path(path.text()).into_iter().map(|detail| path.invalid(detail)));
}

/// Checks the initiator name. Upstream writes the field in lower case in paths.
fn initiator_name(source: &Cursor<'_>, errors: &mut Errors) {
    let name = source.at("initiatorName");
    if name.is_set() {
        iscsi_name(&source.named("initiatorname", name.value), errors);
    }
}

fn quobyte(source: &Cursor<'_>, errors: &mut Errors) {
    let (registry, tenant) = (source.at("registry"), source.at("tenant"));
    if registry.is_empty() {
        errors.push(registry.missing("must be a host:port pair or multiple pairs separated by commas"));
    } else if tenant.text().len() >= 65 {
        errors.push(tenant.missing("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        host_ports(&registry, errors);
    }
}

/// Checks the publish secret. Upstream reports an invalid name at `name` of the source.
fn publish_secret(source: &Cursor<'_>, errors: &mut Errors) {
    let reference = source.at("nodePublishSecretRef");
    let name = reference.at("name");
    let reported = source.named("name", name.value);
    reported.format(names::dns_subdomain, errors);
}
