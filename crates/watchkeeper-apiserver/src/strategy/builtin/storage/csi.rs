//! The objects of CSI drivers: drivers, nodes and storage capacities.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    super::{
        node_selector,
        row::{CLUSTER, PLAIN, StatusMetadata, StrategyRow},
    },
    DRIVER_NAME,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{Bool, EmptyObject, Null, Str},
    },
    names,
    quantity::Quantity,
    table::{self, Rule, RuleTable},
};

pub(super) const DRIVER: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    delete_returns_object: true,
    generation: &["spec"],
    starts_generation: false,
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "spec", EmptyObject),
                ("spec", "attachRequired", Bool(true)),
                ("spec", "podInfoOnMount", Bool(false)),
                ("spec", "storageCapacity", Bool(false)),
                ("spec", "fsGroupPolicy", Str("ReadWriteOnceWithFSType")),
                ("spec", "requiresRepublish", Bool(false)),
                ("spec", "seLinuxMount", Bool(false)),
                ("spec", "preventPodSchedulingIfMissing", Bool(false)),
            ],
        );
        edit::each(object, "spec", &mut |spec| {
            let has_modes = spec
                .get("volumeLifecycleModes")
                .and_then(Value::as_array)
                .is_some_and(|modes| !modes.is_empty());
            if !has_modes {
                spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
            }
        });
    },
    table: &[("spec", &[Rule::Struct(DRIVER_SPEC)])],
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let start = errors.len();
        spec.at("attachRequired").immutable(&old.at("attachRequired"), errors);
        // The path contains a misspelled member, as upstream.
        for error in errors.iter_mut().skip(start) {
            "spec.attachedRequired".clone_into(&mut error.path);
        }
        spec.at("volumeLifecycleModes").immutable(&old.at("volumeLifecycleModes"), errors);
    },
    warnings: |object, old| {
        let requests = |object: &Value| object.pointer("/spec/tokenRequests").cloned().unwrap_or(Value::Null);
        let now = requests(object);
        let is_new = old.is_none_or(|old| requests(old) != now);
        let has_requests = now.as_array().is_some_and(|requests| !requests.is_empty());
        let is_unset = object.pointer("/spec/serviceAccountTokenInSecrets").is_none_or(Value::is_null);
        if is_new && has_requests && is_unset {
            return vec!["spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned()];
        }
        Vec::new()
    },
    ..CLUSTER
};

const DRIVER_SPEC: RuleTable = &[
    ("fsGroupPolicy", &[Rule::Enum(&["File", "None", "ReadWriteOnceWithFSType"])]),
    ("tokenRequests", &[Rule::Check(token_requests)]),
    ("volumeLifecycleModes", &[Rule::Check(lifecycle_modes)]),
    (
        "nodeAllocatableUpdatePeriodSeconds",
        &[Rule::Check(|period, errors| {
            if period.int().is_some_and(|seconds| seconds < 10) {
                errors.push(period.invalid("must be greater than or equal to 10 seconds"));
            }
        })],
    ),
    (
        "",
        &[Rule::Check(|spec, errors| {
            let in_secrets = spec.at("serviceAccountTokenInSecrets");
            if in_secrets.is_set() && spec.at("tokenRequests").is_empty() {
                errors.push(
                    in_secrets
                        .invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"),
                );
            }
        })],
    ),
];

fn token_requests(requests: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for request in requests.items() {
        let audience = request.at("audience");
        if !seen.insert(audience.text().to_owned()) {
            errors.push(audience.duplicate());
            continue;
        }
        let seconds = request.at("expirationSeconds");
        match seconds.int() {
            Some(..600) => errors.push(seconds.invalid("may not specify a duration less than 10 minutes")),
            Some(given) if given > 1 << 32 => {
                errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
            }
            _ => {}
        }
    }
}

fn lifecycle_modes(modes: &Cursor<'_>, errors: &mut Errors) {
    for mode in modes.items() {
        if !matches!(mode.text(), "Persistent" | "Ephemeral") {
            let mut error = modes.unsupported(&["Persistent", "Ephemeral"]);
            error.bad_value = Some(mode.value.clone());
            errors.push(error);
        }
    }
}

pub(super) const NODE: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    delete_returns_object: true,
    zeros: &[("", "spec", EmptyObject), ("spec", "drivers", Null)],
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    gated: &[("status", &[("storageHealth", "CSIVolumeHealth")])],
    table: &[("spec.drivers", &[Rule::Check(drivers)])],
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let drivers = spec.at("drivers");
        // The number of volumes on the node may change; the rest of a driver is immutable.
        let fixed = |driver: &Cursor<'_>| {
            let mut driver = driver.value.clone();
            if let Some(members) = driver.as_object_mut() {
                members.remove("allocatable");
                members.retain(|_, value| !value.is_null());
            }
            driver
        };
        for before in old.at("drivers").items() {
            for now in drivers.items().filter(|now| now.at("name").text() == before.at("name").text()) {
                if fixed(&now) != fixed(&before) {
                    let mut error = drivers.invalid("field is immutable");
                    error.bad_value = Some(now.value.clone());
                    errors.push(error);
                }
            }
        }
    },
    ..CLUSTER
};

const NODE_DRIVER: RuleTable = &[
    ("name", DRIVER_NAME),
    (
        "nodeID",
        &[
            Rule::Required,
            Rule::Check(|id, errors| {
                if id.text().len() > 256 {
                    errors.push(id.invalid("must be 256 characters or less"));
                }
            }),
        ],
    ),
    ("allocatable.count", &[Rule::AtLeast(0)]),
];

fn drivers(drivers: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for driver in drivers.items() {
        table::check(NODE_DRIVER, &driver, errors);
        let name = driver.at("name");
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        let mut keys = BTreeSet::new();
        for key in driver.at("topologyKeys").items() {
            let text = key.text();
            let of_driver = |mut error: crate::field::FieldError| {
                error.path = driver.path();
                error
            };
            if text.is_empty() {
                errors.push(driver.missing(""));
            }
            if !keys.insert(text.to_owned()) {
                errors.push(of_driver(key.duplicate()));
            }
            errors.extend(names::qualified(text).into_iter().map(|detail| of_driver(key.invalid(detail))));
        }
    }
}

pub(super) const STORAGE_CAPACITY: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    defaults: |object| {
        edit::each(object, "", &mut |members| {
            for member in ["capacity", "maximumVolumeSize"] {
                if let Some(quantity) = members.get(member).and_then(Quantity::from_value) {
                    members.insert(member.to_owned(), quantity.canonical().into());
                }
            }
        });
    },
    table: &[
        ("nodeTopology", &[Rule::LabelSelector, Rule::Immutable]),
        ("storageClassName", &[Rule::EvenEmpty(names::dns_subdomain), Rule::Immutable]),
        ("capacity", &[Rule::QuantityAtLeastZero]),
    ],
    warnings: |object, _| {
        let root = Cursor::root(object);
        let topology = root.at("nodeTopology");
        let mut warnings = node_selector::expression_warnings(&topology.at("matchExpressions"));
        for (label, _) in topology.at("matchLabels").entries() {
            warnings.extend(
                node_selector::deprecation(label)
                    .map(|advice| format!("nodeTopology.matchLabels.{label}: {advice}")),
            );
        }
        warnings
    },
    ..PLAIN
};
