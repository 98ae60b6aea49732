//! What is wrong with the volumes of a pod.

use std::collections::BTreeSet;

use crate::strategy::{
    at::{At, Errors},
    names,
};

/// Members a source cannot do without.
const REQUIRED: &[(&str, &[&str])] = &[
    ("hostPath", &["path"]),
    ("secret", &["secretName"]),
    ("configMap", &["name"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("nfs", &["server", "path"]),
    ("csi", &["driver"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("azureFile", &["secretName", "shareName"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("rbd", &["monitors", "image"]),
    ("cephfs", &["monitors"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("vsphereVolume", &["volumePath"]),
    ("glusterfs", &["endpoints", "path"]),
    ("gitRepo", &["repository"]),
    ("ephemeral", &["volumeClaimTemplate"]),
    ("portworxVolume", &["volumeID"]),
    ("photonPersistentDisk", &["pdID"]),
    ("quobyte", &["registry", "volume"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
];

/// The names of the volumes, good or not, so that a mount of a bad one is not reported as well.
pub(super) fn volumes(volumes: &At<'_>, errors: &mut Errors) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for volume in volumes.items() {
        let name = volume.at("name");
        name.required_format(names::dns_label, errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        source(&volume, errors);
    }
    seen
}

fn source(volume: &At<'_>, errors: &mut Errors) {
    let sources = || {
        volume
            .value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, value)| *name != "name" && !value.is_null())
    };
    for (name, _) in sources().skip(1) {
        errors.push(volume.at(name).forbidden("may not specify more than 1 volume type"));
    }
    let Some((name, _)) = sources().next() else {
        errors.push(volume.missing("must specify a volume type"));
        return;
    };
    let source = volume.at(name);
    let required = REQUIRED.iter().find(|(of, _)| of == name).map_or(&[][..], |(_, members)| members);
    for member in required {
        source.at(member).required(errors);
    }
    let mode = source.at("defaultMode");
    if mode.int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
    if name == "hostPath" {
        let path = source.at("path");
        if path.text().split('/').any(|part| part == "..") {
            errors.push(path.invalid("must not contain '..'"));
        }
        source.at("type").one_of(
            &[
                "",
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ],
            errors,
        );
    }
    for item in source.at("items").items() {
        if matches!(name.as_str(), "configMap" | "secret") {
            item.at("key").required(errors);
        }
        let path = item.at("path");
        if path.required(errors) {
            if path.text().starts_with('/') {
                errors.push(path.invalid("must be a relative path"));
            }
            if path.text().split('/').any(|part| part == "..") {
                errors.push(path.invalid("must not contain '..'"));
            }
        }
    }
}
