//! Resource slices: the devices that a driver offers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::{
        node_selector::NODE_SELECTOR,
        row::{CLUSTER, StrategyRow},
        storage::DRIVER_NAME,
    },
    TAINT, binding_conditions, date_taints, pool_name, qualified_name, quantity,
};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit, metadata, names,
        quantity::Quantity,
        table::{self, Rule, RuleTable},
    },
};

pub(super) const RESOURCE_SLICE: StrategyRow = StrategyRow {
    delete_returns_object: true,
    generation: &["spec"],
    gated: &[(
        "spec",
        &[
            ("partitionTypeAttribute", "DRAPartitionableDevicesType"),
            ("skipNodeOperations", "DRAOptionalNodeOperations"),
            ("devices[].nodeAllocatableResources", "DRANodeAllocatableResources"),
            ("devices[].consumesCounters[].compatibilityGroups", "DRADeviceCompatibilityGroups"),
            ("devices[].attributes{}.bools", "DRAListTypeAttributes"),
            ("devices[].attributes{}.ints", "DRAListTypeAttributes"),
            ("devices[].attributes{}.strings", "DRAListTypeAttributes"),
            ("devices[].attributes{}.versions", "DRAListTypeAttributes"),
        ],
    )],
    defaults: |object| {
        let places = [
            ("spec.devices[].capacity{}", "value"),
            ("spec.devices[].consumesCounters[].counters{}", "value"),
            ("spec.sharedCounters[].counters{}", "value"),
        ];
        for (path, member) in places {
            edit::each(object, path, &mut |members| {
                if let Some(amount) = members.get(member).and_then(Quantity::from_value) {
                    members.insert(member.to_owned(), amount.canonical().into());
                }
            });
        }
    },
    timed_defaults: |object, now| date_taints(object, "spec.devices[].taints[]", now),
    table: &[
        ("spec.driver", DRIVER_NAME),
        ("spec.pool", &[Rule::Struct(POOL)]),
        ("spec.driver|nodeName", &[Rule::Immutable]),
        ("spec", &[Rule::Check(check)]),
    ],
    warnings: |object, _| {
        let driver = object.pointer("/spec/driver").and_then(Value::as_str).unwrap_or_default();
        if driver == driver.to_lowercase() {
            return Vec::new();
        }
        vec![format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        )]
    },
    ..CLUSTER
};

const POOL: RuleTable = &[
    ("name", &[Rule::Check(pool_name), Rule::Immutable]),
    ("resourceSliceCount", &[Rule::Positive("must be greater than zero")]),
    (
        "generation",
        &[Rule::Check(|generation, errors| {
            if generation.int().is_some_and(|number| number < 0) {
                errors.push(generation.invalid("must be greater than or equal to zero"));
            }
        })],
    ),
];

/// Returns the fields for choosing nodes that are set, and reports those with invalid values.
fn node_choice(
    at: &Cursor<'_>,
    flags: &[&'static str],
    empty: &str,
    errors: &mut Errors,
) -> Vec<&'static str> {
    let mut set = Vec::new();
    let name = at.at("nodeName");
    if name.is_set() {
        if name.is_empty() {
            errors.push(name.invalid(empty));
        } else {
            set.push("`nodeName`");
            name.format(names::dns_subdomain, errors);
        }
    }
    let selector = at.at("nodeSelector");
    if selector.is_set() {
        set.push("`nodeSelector`");
        table::check(NODE_SELECTOR, &selector, errors);
    }
    for flag in flags {
        let value = at.at(flag);
        if value.is_true() {
            set.push(flag);
        } else if value.is_set() {
            errors.push(value.invalid("must be either unset or set to true"));
        }
    }
    set
}

fn check(spec: &Cursor<'_>, errors: &mut Errors) {
    const ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let set = node_choice(
        spec,
        &["allNodes", "perDeviceNodeSelection"],
        "must be either unset or set to a non-empty string",
        errors,
    );
    let terms = spec.at("nodeSelector").at("nodeSelectorTerms").value.as_array().map_or(0, Vec::len);
    if spec.at("nodeSelector").is_set() && terms != 1 {
        let selector = spec.at("nodeSelector");
        errors.push(selector.at("nodeSelectorTerms").invalid("must have exactly one node selector term"));
    }
    match set.len() {
        0 => errors.push(spec.missing(ONE)),
        1 => {}
        _ => {
            let mut error = spec.invalid(format!("{ONE}, but multiple fields are set"));
            error.bad_value = Some(format!("{{{}}}", set.join(", ")).into());
            errors.push(error);
        }
    }
    let (devices, counters) = (spec.at("devices"), spec.at("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        let mut error = spec.invalid("only one of `sharedCounters` or `devices` is allowed");
        error.bad_value = Some("".into());
        errors.push(error);
    }
    let is_advanced = devices
        .items()
        .any(|device| !device.at("taints").is_empty() || !device.at("consumesCounters").is_empty());
    let most = if is_advanced { 64 } else { 128 };
    if devices.items().count() > most {
        errors.push(table::too_many(&devices, most));
    } else {
        let per_device = spec.at("perDeviceNodeSelection").is_true();
        for device in devices.items() {
            check_device(&device, per_device, errors);
        }
        unique(&devices, "name", errors);
    }
    if counters.items().count() > 8 {
        errors.push(table::too_many(&counters, 8));
    } else {
        for counter_set in counters.items() {
            table::check(COUNTER_SET, &counter_set, errors);
            counter_names(&counter_set.at("counters"), errors);
        }
        unique(&counters, "name", errors);
    }
}

fn unique(list: &Cursor<'_>, member: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        if !seen.insert(item.at(member).text().to_owned()) {
            let mut error = item.duplicate();
            error.bad_value = Some(item.at(member).text().into());
            errors.push(error);
        }
    }
}

const COUNTER_SET: RuleTable = &[
    ("name", &[Rule::Required, Rule::Format(names::dns_label)]),
    ("counters", &[Rule::Required, Rule::MaxItems(32)]),
];

const CONSUMPTION: RuleTable = &[
    ("counterSet", &[Rule::Required, Rule::Format(names::dns_label)]),
    ("counters", &[Rule::Required, Rule::MaxItems(32)]),
];

fn counter_names(counters: &Cursor<'_>, errors: &mut Errors) {
    for (name, _) in counters.entries() {
        errors.extend(names::dns_label(name).into_iter().map(|detail| {
            FieldError::new(FieldErrorKind::Invalid, counters.path(), Some(name.into()), detail)
        }));
    }
}

fn check_device(device: &Cursor<'_>, per_device: bool, errors: &mut Errors) {
    let name = device.at("name");
    errors.extend(names::dns_label(name.text()).into_iter().map(|detail| name.invalid(detail)));
    let (attributes, capacity) = (device.at("attributes"), device.at("capacity"));
    let count = attributes.entries().count() + capacity.entries().count();
    if count > 32 {
        let mut error = device.invalid("the total number of attributes and capacities must not exceed 32");
        error.bad_value = Some(count.into());
        errors.push(error);
    }
    for (name, attribute) in attributes.entries() {
        qualified_name(name, &attributes, errors);
        check_attribute(&attribute, errors);
    }
    let is_shared = device.at("allowMultipleAllocations").is_true();
    for (name, amount) in capacity.entries() {
        qualified_name(name, &capacity, errors);
        quantity::check_policy(&amount, is_shared, errors);
    }
    let taints = device.at("taints");
    if taints.items().count() > 16 {
        errors.push(table::too_many(&taints, 16));
    } else {
        for taint in taints.items() {
            table::check(TAINT, &taint, errors);
        }
    }
    let consumed = device.at("consumesCounters");
    if consumed.items().count() > 2 {
        errors.push(table::too_many(&consumed, 2));
    } else {
        for consumption in consumed.items() {
            table::check(CONSUMPTION, &consumption, errors);
            counter_names(&consumption.at("counters"), errors);
        }
        unique(&consumed, "counterSet", errors);
    }
    device_nodes(device, per_device, errors);
    binding_conditions(device, errors);
}

fn device_nodes(device: &Cursor<'_>, per_device: bool, errors: &mut Errors) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !per_device {
        let is_set = ["nodeName", "nodeSelector", "allNodes"].iter().any(|member| device.at(member).is_set());
        if is_set {
            let mut error = device.invalid("`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec");
            error.bad_value = Some(Value::Null);
            errors.push(error);
        }
        return;
    }
    let set = node_choice(device, &["allNodes"], "must not be empty", errors);
    match set.len() {
        0 => errors.push(device.missing(ONE)),
        1 => {}
        _ => {
            let mut error = device.invalid(ONE);
            error.bad_value = Some(format!("{{{}}}", set.join(", ")).into());
            errors.push(error);
        }
    }
}

fn check_attribute(attribute: &Cursor<'_>, errors: &mut Errors) {
    const LENGTH: usize = 64;
    let (string, version) = (attribute.at("string"), attribute.at("version"));
    if string.text().len() > LENGTH {
        errors.push(metadata::too_long(&string, LENGTH));
    }
    if version.is_set() {
        errors.extend(
            names::semantic_version(version.text()).into_iter().map(|detail| version.invalid(detail)),
        );
        if version.text().len() > LENGTH {
            errors.push(metadata::too_long(&version, LENGTH));
        }
    }
    let members = ["bool", "int", "string", "version"];
    if members.iter().filter(|member| attribute.at(member).is_set()).count() != 1 {
        errors.push(attribute.invalid("exactly one value must be specified"));
    }
}
