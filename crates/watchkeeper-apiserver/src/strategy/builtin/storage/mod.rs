//! Volumes, claims and storage classes.

mod attachment;
mod claim;
mod csi;
mod source;
mod volume;

use serde_json::{Value, json};

pub(super) use self::{claim::PERSISTENT_VOLUME_CLAIM, volume::PERSISTENT_VOLUME};
use super::{
    node_selector,
    row::{CLUSTER, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{self, DefaultValue::Str},
    metadata::too_long,
    names,
    table::{Rule, RuleTable},
};

/// Returns the row of a kind of the group `storage.k8s.io`.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "StorageClass" => STORAGE_CLASS,
        "CSIDriver" => csi::DRIVER,
        "CSINode" => csi::NODE,
        "CSIStorageCapacity" => csi::STORAGE_CAPACITY,
        "VolumeAttachment" => attachment::VOLUME_ATTACHMENT,
        "VolumeAttributesClass" => VOLUME_ATTRIBUTES_CLASS,
        _ => return None,
    })
}

/// The rules of the name of a CSI or device driver.
pub(super) const DRIVER_NAME: &[Rule] =
    &[Rule::Required, Rule::MaxLength(63), Rule::Format(names::caseless_subdomain)];

/// The maximum number of parameters of a class, and their maximum total size in bytes.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE: usize = 256 * 1024;

const STORAGE_CLASS: StrategyRow = StrategyRow {
    delete_returns_object: true,
    defaults: |object| {
        edit::fill_all(
            object,
            &[("", "reclaimPolicy", Str("Delete")), ("", "volumeBindingMode", Str("Immediate"))],
        );
    },
    table: CLASS,
    warnings: |object, _| {
        let root = Cursor::root(object);
        let mut warnings = Vec::new();
        let path = "allowedTopologies[].matchLabelExpressions[].key";
        crate::strategy::table::visit(&root, None, path, &mut |key, _| {
            warnings.extend(
                node_selector::deprecation(key.text()).map(|advice| format!("{}: {advice}", key.path())),
            );
        });
        warnings
    },
    ..CLUSTER
};

const CLASS: RuleTable = &[
    ("provisioner", &[Rule::Required, Rule::Format(names::caseless_qualified), Rule::Immutable]),
    ("parameters", &[Rule::Check(parameters), Rule::Immutable]),
    ("reclaimPolicy", &[Rule::OneOf(&["Delete", "Retain"]), Rule::Immutable]),
    (
        "volumeBindingMode",
        &[Rule::Present(""), Rule::Enum(&["Immediate", "WaitForFirstConsumer"]), Rule::Immutable],
    ),
    ("allowedTopologies", &[Rule::Check(node_selector::topologies)]),
];

const VOLUME_ATTRIBUTES_CLASS: StrategyRow = StrategyRow {
    delete_returns_object: true,
    prepare_create: |object| add_finalizer(object, "kubernetes.io/vac-protection"),
    table: &[
        (
            "driverName",
            &[
                Rule::CheckChange(|name, old, errors| unchanged("driverName", name, old, errors)),
                Rule::Required,
                Rule::Format(names::caseless_qualified),
            ],
        ),
        (
            "parameters",
            &[
                Rule::Check(parameters),
                Rule::CheckChange(|map, old, errors| unchanged("parameters", map, old, errors)),
            ],
        ),
        ("parameters", &[Rule::RequiredAs("must contain at least one key/value pair")]),
    ],
    ..CLUSTER
};

fn unchanged(member: &str, at: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if at.value != old.value && !(at.is_empty() && old.is_empty()) {
        errors.push(at.forbidden(format!("updates to {member} are forbidden.")));
    }
}

fn parameters(parameters: &Cursor<'_>, errors: &mut Errors) {
    if parameters.entries().count() > PARAMETERS_MAX {
        errors.push(too_long(parameters, PARAMETERS_MAX));
        return;
    }
    for (name, _) in parameters.entries() {
        if name.is_empty() {
            let mut error = parameters.invalid("field can not be empty.");
            error.bad_value = Some("".into());
            errors.push(error);
        }
    }
    let size: usize = parameters.entries().map(|(name, value)| name.len() + value.text().len()).sum();
    if size > PARAMETERS_SIZE {
        errors.push(too_long(parameters, PARAMETERS_SIZE));
    }
}

/// Adds a finalizer that protects the object while it is in use.
fn add_finalizer(object: &mut Value, name: &str) {
    let Some(metadata) = edit::object(object, "metadata") else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|finalizer| finalizer == name)
    {
        finalizers.push(name.into());
    }
}
