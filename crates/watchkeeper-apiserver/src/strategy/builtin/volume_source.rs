//! Rules of volume sources that pods and persistent volumes share.

use std::sync::LazyLock;

use regex::Regex;

use crate::strategy::cursor::{Cursor, Errors};

/// The forms of an iSCSI name, each with its prefix: `iqn.2001-04.com.example:x`, `eui.` with 16 and `naa.` with 32 letters
/// or digits.
static ISCSI_NAMES: LazyLock<[(&str, Option<Regex>); 3]> = LazyLock::new(|| {
    [
        ("iqn", r"iqn\.[0-9]{4}-[0-9]{2}\.[0-9A-Za-z.-]+:[^,;*&$|\t\n\f\r ]+$"),
        ("eui", "^eui.[0-9A-Za-z]{16}$"),
        ("naa", "^naa.[0-9A-Za-z]{32}$"),
    ]
    .map(|(prefix, pattern)| (prefix, Regex::new(pattern).ok()))
});

/// Checks the name of an iSCSI initiator or target.
pub(super) fn iscsi_name(name: &Cursor<'_>, errors: &mut Errors) {
    let text = name.text();
    let form = ISCSI_NAMES.iter().find(|(prefix, _)| text.starts_with(prefix));
    match form {
        None => errors.push(name.invalid("must be valid format starting with iqn, eui, or naa")),
        Some((_, pattern)) if !pattern.as_ref().is_some_and(|pattern| pattern.is_match(text)) => {
            errors.push(name.invalid("must be valid format"));
        }
        Some(_) => {}
    }
}

/// Checks that a Flocker source names its dataset in exactly one way.
pub(super) fn flocker(source: &Cursor<'_>, errors: &mut Errors) {
    let (name, uuid) = (source.at("datasetName"), source.at("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => errors.push(source.missing("one of datasetName and datasetUUID is required")),
        (false, false) => {
            errors.push(source.invalid("datasetName and datasetUUID can not be specified simultaneously"));
        }
        _ => {}
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

/// Checks a list of `host:port`, separated by commas.
pub(super) fn host_ports(registry: &Cursor<'_>, errors: &mut Errors) {
    for pair in registry.text().split(',') {
        if pair.rsplit_once(':').is_none_or(|(host, _)| host.contains(':') && !host.ends_with(']')) {
            errors.push(registry.invalid("must be a host:port pair or multiple pairs separated by commas"));
        }
    }
}

/// Checks that a Fibre Channel source names its target in exactly one way.
pub(super) fn fibre_channel(source: &Cursor<'_>, errors: &mut Errors) {
    let (names, ids, lun) = (source.at("targetWWNs"), source.at("wwids"), source.at("lun"));
    match (names.is_empty(), ids.is_empty()) {
        (true, true) => {
            errors.push(names.missing("must specify either targetWWNs or wwids, but not both"));
        }
        (false, false) => {
            errors.push(names.invalid("targetWWNs and wwids can not be specified simultaneously"));
        }
        _ => {}
    }
    if !names.is_empty() {
        if lun.is_set() {
            lun.between(0, 255, errors);
        } else {
            errors.push(lun.missing("lun is required if targetWWNs is specified"));
        }
    }
}

/// Checks that the options of a flex volume use no domain of Kubernetes.
pub(super) fn flex_options(options: &Cursor<'_>, errors: &mut Errors) {
    for (name, option) in options.entries() {
        let domain = format!(".{}", name.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let mut error = option.invalid("kubernetes.io and k8s.io namespaces are reserved");
            error.bad_value = Some(name.into());
            errors.push(error);
        }
    }
}

/// Checks that the URI of an Azure disk matches the kind of the disk.
pub(super) fn azure_uri(source: &Cursor<'_>, errors: &mut Errors) {
    let (kind, uri) = (source.at("kind"), source.at("diskURI"));
    if !kind.is_set() {
        return;
    }
    if kind.text() == "Managed" {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn iscsi_target_names_are_iqn_eui_or_naa() {
        let is_accepted = |name: &str| {
            let (value, mut errors) = (Value::from(name), Errors::new());
            iscsi_name(&Cursor::root(&value), &mut errors);
            errors.is_empty()
        };
        for name in [
            "iqn.2001-04.com.example:storage:disk1",
            "eui.0123456789ABCDEf",
            &format!("naa.{}", "a".repeat(32)),
        ] {
            assert!(is_accepted(name), "{name}");
        }
        for name in [
            "iqn.2001-04.com.example",
            "iqn.2001-04.com.example:a b",
            "iqn.01-04.com:a",
            "eui.0123",
            "naa.62004567BA64678D",
            "x",
            "",
        ] {
            assert!(!is_accepted(name), "{name}");
        }
    }
}
