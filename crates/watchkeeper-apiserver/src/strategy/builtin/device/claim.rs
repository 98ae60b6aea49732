//! Resource claims and their templates.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    super::{
        node_selector::NODE_SELECTOR,
        row::{StatusMetadata, StrategyRow},
        storage::DRIVER_NAME,
    },
    CONFIGURATION, NAMESPACED, SELECTOR, TOLERATION, binding_conditions, fully_qualified_name, if_set,
    pool_name, raw_object,
};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit::{self, DefaultValue::EmptyObject},
        metadata, names,
        table::{self, Rule, RuleTable},
    },
};

const GATED: &[(&str, &str)] = &[
    ("devices.requests[].exactly.derivedAttributes", "DRADerivedAttributes"),
    ("devices.requests[].firstAvailable[].derivedAttributes", "DRADerivedAttributes"),
];

pub(super) const RESOURCE_CLAIM: StrategyRow = StrategyRow {
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    zeros: &[("", "spec", EmptyObject), ("spec", "devices", EmptyObject), ("", "status", EmptyObject)],
    gated: &[
        ("spec", GATED),
        ("status", &[("allocation.devices.results[].skipNodeOperations", "DRAOptionalNodeOperations")]),
    ],
    defaults: |object| defaults(object, "spec"),
    prepare_status: drop_deallocated,
    validate_create: |object, errors| check(&object.at("spec"), errors),
    validate_update: |object, old, errors| object.at("spec").immutable(&old.at("spec"), errors),
    validate_status: status,
    ..NAMESPACED
};

pub(super) const RESOURCE_CLAIM_TEMPLATE: StrategyRow = StrategyRow {
    zeros: &[
        ("", "spec", EmptyObject),
        ("spec", "metadata", EmptyObject),
        ("spec", "spec", EmptyObject),
        ("spec.spec", "devices", EmptyObject),
    ],
    gated: &[("spec.spec", GATED)],
    defaults: |object| defaults(object, "spec.spec"),
    validate: |object, errors| {
        let spec = object.at("spec");
        metadata::of_template(&spec.at("metadata"), errors);
        check(&spec.at("spec"), errors);
    },
    validate_update: |object, old, errors| object.at("spec").immutable(&old.at("spec"), errors),
    ..NAMESPACED
};

/// Sets the default number of devices, one.
fn defaults(object: &mut Value, spec: &str) {
    let mut fill = |request: &mut edit::Members| {
        edit::fill(request, "allocationMode", edit::DefaultValue::Str("ExactCount"));
        if edit::text(request, "allocationMode") == "ExactCount" {
            edit::fill(request, "count", edit::DefaultValue::Int(1));
        }
    };
    for path in ["devices.requests[].exactly", "devices.requests[].firstAvailable[]"] {
        edit::each(object, &format!("{spec}.{path}"), &mut fill);
        edit::each(object, &format!("{spec}.{path}.tolerations[]"), &mut |toleration| {
            edit::fill(toleration, "operator", edit::DefaultValue::Str("Equal"));
        });
    }
}

/// The names of requests, each with the names of its alternatives.
type RequestNames = BTreeMap<String, BTreeSet<String>>;

fn request_names(devices: &Cursor<'_>) -> RequestNames {
    let mut known = RequestNames::new();
    for request in devices.at("requests").items() {
        let alternatives = request.at("firstAvailable");
        let names = alternatives.items().map(|request| request.at("name").text().to_owned()).collect();
        known.insert(request.at("name").text().to_owned(), names);
    }
    known
}

/// Checks a reference to a request, or to an alternative of one.
fn request_reference(reference: &Cursor<'_>, known: &RequestNames, errors: &mut Errors) {
    const DETAIL: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let parts: Vec<&str> = reference.text().split('/').collect();
    if parts.len() > 2 {
        errors.push(reference.invalid(DETAIL));
        return;
    }
    for part in &parts {
        errors.extend(names::dns_label(part).into_iter().map(|detail| {
            FieldError::new(FieldErrorKind::Invalid, reference.path(), Some((*part).into()), detail)
        }));
    }
    let is_known = match parts.as_slice() {
        [request] => known.contains_key(*request),
        [request, alternative] => known.get(*request).is_some_and(|names| names.contains(*alternative)),
        _ => false,
    };
    if !is_known {
        errors.push(reference.invalid(DETAIL));
    }
}

fn references(list: &Cursor<'_>, known: &RequestNames, errors: &mut Errors) {
    if list.items().count() > 32 {
        errors.push(table::too_many(list, 32));
        return;
    }
    for reference in list.items() {
        request_reference(&reference, known, errors);
    }
    table::check_rules(&[Rule::UniqueItems], list, errors);
}

const REQUEST: RuleTable = &[
    ("deviceClassName", &[Rule::Required, Rule::Format(names::dns_subdomain)]),
    ("selectors", &[Rule::MaxItems(32)]),
    ("selectors[]", &[Rule::Struct(SELECTOR)]),
    ("allocationMode", &[Rule::Enum(&["All", "ExactCount"])]),
    ("", &[Rule::Check(count)]),
    ("tolerations[]", &[Rule::Struct(TOLERATION)]),
];

fn count(request: &Cursor<'_>, errors: &mut Errors) {
    let count = request.at("count");
    let given = count.int().unwrap_or(0);
    match request.at("allocationMode").text() {
        "All" if given != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "ExactCount" if given <= 0 => errors.push(count.invalid("must be greater than zero")),
        _ => {}
    }
}

fn check(spec: &Cursor<'_>, errors: &mut Errors) {
    let devices = spec.at("devices");
    let known = request_names(&devices);
    let is_short = |list: &Cursor<'_>, errors: &mut Errors| {
        let fits = list.items().count() <= 32;
        if !fits {
            errors.push(table::too_many(list, 32));
        }
        fits
    };
    let requests = devices.at("requests");
    if is_short(&requests, errors) {
        for request in requests.items() {
            device_request(&request, errors);
        }
        unique_names(&requests, errors);
    }
    let constraints = devices.at("constraints");
    if is_short(&constraints, errors) {
        for constraint in constraints.items() {
            references(&constraint.at("requests"), &known, errors);
            let (same, distinct) = (constraint.at("matchAttribute"), constraint.at("distinctAttribute"));
            if same.is_set() {
                fully_qualified_name(&same, errors);
            } else if distinct.is_set() {
                fully_qualified_name(&distinct, errors);
            } else {
                errors.push(constraint.missing(
                    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
                ));
            }
        }
    }
    let config = devices.at("config");
    if is_short(&config, errors) {
        for config in config.items() {
            references(&config.at("requests"), &known, errors);
            table::check(CONFIGURATION, &config, errors);
        }
    }
}

/// Checks that the names of items are unique. Errors are reported at the item.
fn unique_names(list: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        if !seen.insert(item.at("name").text().to_owned()) {
            let mut error = item.duplicate();
            error.bad_value = Some(item.at("name").text().into());
            errors.push(error);
        }
    }
}

fn device_request(request: &Cursor<'_>, errors: &mut Errors) {
    let (exactly, first) = (request.at("exactly"), request.at("firstAvailable"));
    table::check(&[("name", &[Rule::EvenEmpty(names::dns_label)])], request, errors);
    match (exactly.is_set(), !first.is_empty()) {
        (false, false) => {
            errors.push(request.missing("exactly one of `exactly` or `firstAvailable` is required"));
        }
        (true, true) => errors.push(request.invalid(
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )),
        (true, false) => table::check(REQUEST, &exactly, errors),
        (false, true) if first.items().count() > 8 => errors.push(table::too_many(&first, 8)),
        (false, true) => {
            for alternative in first.items() {
                let name = alternative.at("name");
                errors.extend(names::dns_label(name.text()).into_iter().map(|detail| name.invalid(detail)));
                table::check(REQUEST, &alternative, errors);
            }
            unique_names(&first, errors);
        }
    }
}

/// The identity of an allocated device.
fn device_id(device: &Value) -> [String; 4] {
    ["driver", "pool", "device", "shareID"]
        .map(|member| device.get(member).and_then(Value::as_str).unwrap_or_default().to_owned())
}

fn allocated(object: &Value) -> BTreeSet<[String; 4]> {
    let results = object.pointer("/status/allocation/devices/results").and_then(Value::as_array);
    results.into_iter().flatten().map(device_id).collect()
}

/// Drops the status of devices that are no longer allocated.
fn drop_deallocated(object: &mut Value, old: &Value) {
    let now = allocated(object);
    let deallocated: BTreeSet<_> =
        allocated(old).into_iter().filter(|device| !now.contains(device)).collect();
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    if let Some(Value::Array(devices)) = status.get_mut("devices") {
        devices.retain(|device| !deallocated.contains(&device_id(device)));
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

const CONSUMER: RuleTable =
    &[("resource", &[Rule::Required]), ("name", &[Rule::Required]), ("uid", &[Rule::Required])];

const RESULT: RuleTable = &[
    ("driver", DRIVER_NAME),
    ("pool", &[Rule::Check(pool_name)]),
    ("device", &[Rule::EvenEmpty(names::dns_label)]),
    ("", &[Rule::Check(binding_conditions)]),
    ("tolerations[]", &[Rule::Struct(TOLERATION)]),
    ("shareID", &[Rule::Check(share_id)]),
];

const DEVICE_STATUS: RuleTable = &[
    ("driver", DRIVER_NAME),
    ("pool", &[Rule::Check(pool_name)]),
    ("device", &[Rule::EvenEmpty(names::dns_label)]),
    ("shareID", &[Rule::Check(share_id)]),
    ("conditions", &[Rule::MaxItems(8), Rule::Check(super::condition::conditions)]),
    ("data", &[Rule::Check(|data, errors| if_set(&[Rule::Check(raw_object)], data, errors))]),
    ("networkData.interfaceName", &[Rule::MaxLength(256)]),
    ("networkData.hardwareAddress", &[Rule::MaxLength(128)]),
    ("networkData.ips", &[Rule::MaxItems(16), Rule::UniqueItems]),
    ("networkData.ips[]", &[Rule::EvenEmpty(names::interface_address)]),
];

/// Checks a share id, a lower-case UUID.
fn share_id(id: &Cursor<'_>, errors: &mut Errors) {
    let text = id.text();
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        });
    if id.is_set() && !is_uuid {
        errors.push(id.invalid(
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters",
        ));
    }
}

fn status(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (status, old_status) = (object.at("status"), old.at("status"));
    let reserved = status.at("reservedFor");
    if reserved.items().count() > 256 {
        errors.push(table::too_many(&reserved, 256));
    } else {
        let mut seen = BTreeSet::new();
        for consumer in reserved.items() {
            table::check(CONSUMER, &consumer, errors);
            if !seen.insert(consumer.at("uid").text().to_owned()) {
                errors.push(consumer.duplicate());
            }
        }
    }
    let (allocation, old_allocation) = (status.at("allocation"), old_status.at("allocation"));
    let known = allocated(object.value);
    let mut seen = BTreeSet::new();
    for device in status.at("devices").items() {
        table::check(DEVICE_STATUS, &device, errors);
        let id = device_id(device.value);
        if !known.contains(&id) {
            let mut error = device.invalid("must be an allocated device in the claim");
            error.bad_value = Some(json!(id.join("/")));
            errors.push(error);
        }
        if !seen.insert(id) {
            errors.push(device.duplicate());
        }
    }
    reservations(object, &reserved, &old_status.at("reservedFor"), allocation.is_set(), errors);
    if old_allocation.is_set() && allocation.is_set() {
        allocation.immutable(&old_allocation, errors);
    } else if allocation.is_set() {
        allocation_result(&allocation, &request_names(&object.at("spec").at("devices")), errors);
    }
}

fn reservations(
    object: &Cursor<'_>,
    now: &Cursor<'_>,
    before: &Cursor<'_>,
    is_allocated: bool,
    errors: &mut Errors,
) {
    if now.is_empty() {
        return;
    }
    let is_deleted = object.at("metadata").at("deletionTimestamp").is_set();
    let is_new = |consumer: Cursor<'_>| !before.items().any(|other| other.value == consumer.value);
    if !is_allocated {
        errors.push(now.forbidden("may not be specified when `allocated` is not set"));
    } else if is_deleted && now.items().any(is_new) {
        errors.push(now.forbidden(
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
        ));
    }
}

fn allocation_result(allocation: &Cursor<'_>, known: &RequestNames, errors: &mut Errors) {
    let devices = allocation.at("devices");
    let results = devices.at("results");
    if results.items().count() > 32 {
        errors.push(table::too_many(&results, 32));
    } else {
        for result in results.items() {
            request_reference(&result.at("request"), known, errors);
            table::check(RESULT, &result, errors);
        }
    }
    let config = devices.at("config");
    if config.items().count() > 64 {
        errors.push(table::too_many(&config, 64));
    } else {
        for config in config.items() {
            let rules = &[Rule::Required, Rule::OneOf(&["FromClaim", "FromClass"])];
            table::check_rules(rules, &config.at("source"), errors);
            references(&config.at("requests"), known, errors);
            table::check(CONFIGURATION, &config, errors);
        }
    }
    table::check(&[("nodeSelector", &[Rule::Pointer(NODE_SELECTOR)])], allocation, errors);
}
