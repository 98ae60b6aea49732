//! Persistent volume claims.

use serde_json::{Value, json};

use super::{
    super::{
        claim::claim_spec,
        resource_name,
        row::{PLAIN, StrategyRow},
    },
    add_finalizer,
};
use crate::strategy::{
    cursor::{Cursor, Errors, moved},
    edit::{
        self,
        DefaultValue::{EmptyObject, Null, Str},
        Members,
    },
    names,
    quantity::{self, Quantity},
    table::{Rule, RuleTable},
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(in super::super) const PERSISTENT_VOLUME_CLAIM: StrategyRow = StrategyRow {
    delete_returns_object: true,
    status: Some(|| Some(json!({"phase": "Pending"}))),
    gated: &[("status", &[("healthStatus", "CSIVolumeHealth")])],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "status", EmptyObject),
                ("status", "phase", Str("Pending")),
                ("spec", "volumeMode", Str("Filesystem")),
                ("spec", "resources", EmptyObject),
                ("status.conditions[]", "lastProbeTime", Null),
                ("status.conditions[]", "lastTransitionTime", Null),
            ],
        );
        edit::each(object, "spec.resources.requests|limits", &mut quantity::canonicalize);
        edit::each(object, "status.capacity|allocatedResources", &mut quantity::canonicalize);
    },
    prepare_create: |object| {
        add_finalizer(object, "kubernetes.io/pvc-protection");
        if let Some(spec) = edit::object(object, "spec") {
            data_sources(spec, None);
        }
    },
    prepare_update: |object, old| {
        if let Some(spec) = edit::object(object, "spec") {
            data_sources(spec, old.get("spec"));
        }
    },
    table: &[("spec", &[Rule::Check(claim_spec)])],
    validate_update: update,
    status_table: STATUS,
    warnings: |object, _| warnings(&Cursor::root(object)),
    ..PLAIN
};

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Synchronizes the two fields for the data source, and drops unsupported sources.
fn data_sources(spec: &mut Members, old: Option<&Value>) {
    let of_old = |member: &str| is_set(old.and_then(|old| old.get(member)));
    let text = |value: Option<&Value>, member: &str| {
        value.and_then(|value| value.get(member)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // Sources in other namespaces are behind a disabled feature gate.
    if !text(spec.get("dataSourceRef"), "namespace").is_empty() && !of_old("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    let is_known = matches!(
        (text(source, "kind").as_str(), text(source, "apiGroup").as_str()),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    );
    if !of_old("dataSource") && !of_old("dataSourceRef") && !is_set(reference) && !is_known {
        spec.remove("dataSource");
    }
    let (source, reference) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (source.filter(|value| !value.is_null()), reference.filter(|value| !value.is_null())) {
        (Some(source), None) => _ = spec.insert("dataSourceRef".to_owned(), source),
        (None, Some(mut reference)) if text(Some(&reference), "namespace").is_empty() => {
            if let Some(members) = reference.as_object_mut() {
                members.remove("namespace");
            }
            spec.insert("dataSource".to_owned(), reference);
        }
        _ => {}
    }
}

fn update(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let annotation = |object: &Cursor<'_>| {
        object.at("metadata").at("annotations").key(CLASS_ANNOTATION).value.as_str().map(ToOwned::to_owned)
    };
    let (class, old_class) = (spec.at("storageClassName"), old_spec.at("storageClassName"));
    let (now, before) = (annotation(object), annotation(old));
    let mut compared = spec.value.clone();
    let mut expected = old_spec.value.clone();
    if old_spec.at("volumeName").is_empty() {
        edit::take_from(&mut expected, spec.value, "volumeName");
    }
    let moves_to_field = before.is_some()
        && !old_class.is_set()
        && class.value.as_str() == before.as_deref()
        && (now.is_none() || now == before);
    let is_first_class = class.is_set()
        && !old_class.is_set()
        && before.as_deref().is_none_or(|before| before == class.text());
    if moves_to_field || is_first_class {
        edit::take_from(&mut compared, old_spec.value, "storageClassName");
    }
    if !moves_to_field && now != before {
        let metadata = object.at("metadata");
        let annotations = metadata.at("annotations");
        errors.push(annotations.key(CLASS_ANNOTATION).invalid("field is immutable"));
    }
    if object.at("status").at("phase").text() == "Bound" {
        edit::take_from(&mut compared, old_spec.value, "volumeAttributesClassName");
        let storage = old_spec.value.pointer("/resources/requests/storage");
        if let (Some(Value::Object(requests)), Some(storage)) =
            (compared.pointer_mut("/resources/requests"), storage)
        {
            requests.insert("storage".to_owned(), storage.clone());
        }
    }
    if compared != expected {
        errors.push(spec.forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    let amount = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Quantity::from_value);
    let requested = "/resources/requests/storage";
    if let (Some(now), Some(before)) = (amount(spec.value, requested), amount(old_spec.value, requested))
        && now < before
        && amount(old.value, "/status/capacity/storage").is_some_and(|capacity| now <= capacity)
    {
        let resources = spec.at("resources");
        let requests = resources.at("requests");
        errors.push(requests.at("storage").forbidden("field can not be less than status.capacity"));
    }
    moved("spec.", "", errors, |errors| {
        spec.at("volumeMode").immutable(&old_spec.at("volumeMode"), errors);
    });
    let attributes = spec.at("volumeAttributesClassName");
    let is_current = old.at("status").at("currentVolumeAttributesClassName").is_set();
    if is_current && attributes.value != old_spec.at("volumeAttributesClassName").value {
        if !attributes.is_set() {
            errors.push(attributes.forbidden(
                "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
            ));
        } else if attributes.is_empty() {
            errors.push(attributes.forbidden(
                "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil",
            ));
        }
    }
}

const STATUS: RuleTable = &[
    (
        "status.capacity{}",
        &[Rule::Check(|amount, errors| {
            if Quantity::from_value(amount.value).is_some_and(Quantity::is_negative) {
                errors.push(amount.invalid("must be a valid resource quantity"));
            }
        })],
    ),
    ("status.allocatedResourceStatuses", &[Rule::Check(resize_statuses)]),
    (
        "status.allocatedResources",
        &[Rule::Check(|amounts, errors| {
            for (name, amount) in amounts.entries() {
                if resize_name(name, amounts, errors) {
                    resource_name::check_amount("storage", &amount, errors);
                }
            }
        })],
    ),
];

/// Checks the name of a resource in a resize: storage, or one outside Kubernetes.
fn resize_name(name: &str, map: &Cursor<'_>, errors: &mut Errors) -> bool {
    let start = errors.len();
    errors.extend(names::qualified(name).into_iter().map(|detail| map.invalid(detail)));
    if errors.len() == start && resource_name::is_native(name) && name != "storage" {
        errors.push(map.unsupported(&["storage"]));
    }
    for error in errors.iter_mut().skip(start) {
        error.bad_value = Some(name.into());
    }
    errors.len() == start
}

fn resize_statuses(statuses: &Cursor<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    for (name, status) in statuses.entries() {
        resize_name(name, statuses, errors);
        if !KNOWN.contains(&status.text()) {
            let mut error = statuses.unsupported(&KNOWN);
            error.bad_value = Some(name.into());
            errors.push(error);
        }
    }
}

fn warnings(object: &Cursor<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if object.at("metadata").at("annotations").key(CLASS_ANNOTATION).is_set() {
        warnings.push(format!(
            "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    let spec = object.at("spec");
    let resources = spec.at("resources");
    for list in ["requests", "limits"] {
        let amounts = resources.at(list);
        let storage = amounts.key("storage");
        if let Some(amount) = Quantity::from_value(storage.value)
            && !amount.is_whole()
        {
            warnings.push(format!(
                "{}: fractional byte value {:?} is invalid, must be an integer",
                storage.path(),
                amount.canonical()
            ));
        }
    }
    warnings
}
