//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    resource_name,
    row::{CLUSTER, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors, moved},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr, Null, Str},
    },
    names, quantity,
    table::{self, Rule, RuleTable},
};

pub(super) const NODE: StrategyRow = StrategyRow {
    status: None,
    gated: &[
        (
            "spec",
            &[
                ("configSource", "DynamicKubeletConfig"),
                ("podPreemptionPolicy", "InPlacePodVerticalScalingSchedulerPreemption"),
            ],
        ),
        ("status", &[("config", "DynamicKubeletConfig")]),
    ],
    defaults: |object| {
        edit::each(object, "status.capacity|allocatable", &mut quantity::canonicalize);
        let capacity = object.pointer("/status/capacity").filter(|capacity| capacity.is_object()).cloned();
        if let (Some(capacity), Some(status)) = (capacity, edit::object(object, "status")) {
            status.entry("allocatable").or_insert(capacity);
        }
        edit::each(object, "spec", &mut pod_cidrs);
    },
    zeros: NODE_ZEROS,
    prepare_create: |object| {
        // A new node is not ready until its kubelet reports readiness.
        if let Some(spec) = edit::object(object, "spec") {
            let taints = spec.entry("taints").or_insert_with(|| json!([]));
            let key = "node.kubernetes.io/not-ready";
            if let Value::Array(taints) = taints
                && !taints.iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(key))
            {
                taints.push(json!({"key": key, "effect": "NoSchedule"}));
            }
        }
    },
    prepare_update: |object, old| edit::take_from(object, old, "status"),
    table: NODE_RULES,
    validate_create: |object, errors| {
        let status = object.at("status");
        let info = status.at("nodeInfo");
        let swap = info.at("swap");
        let capacity = swap.at("capacity");
        if capacity.int().is_some_and(|bytes| bytes <= 0) {
            let mut error = capacity.invalid("must be greater than 0");
            "metadata.nodeSwapStatus.capacity".clone_into(&mut error.path);
            errors.push(error);
        }
    },
    validate_update: update_node,
    status_table: &[
        ("", &[Rule::Check(taints), Rule::Check(resources)]),
        ("status", &[Rule::Struct(STATUS)]),
    ],
    validate_status: update_node,
    warnings: |object, _| {
        let mut warnings = Vec::new();
        let spec = object.get("spec");
        let has = |member: &str| spec.and_then(|spec| spec.get(member)).is_some_and(|value| !value.is_null());
        if has("configSource") {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if has("externalID") {
            warnings
                .push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
        }
        warnings
    },
    ..CLUSTER
};

const NODE_ZEROS: &[edit::Fill] = &[
    ("", "spec", EmptyObject),
    ("", "status", EmptyObject),
    ("status", "daemonEndpoints", EmptyObject),
    ("status.daemonEndpoints", "kubeletEndpoint", EmptyObject),
    ("status.daemonEndpoints.kubeletEndpoint", "Port", IntPtr(0)),
    ("status", "nodeInfo", EmptyObject),
    ("status.nodeInfo", "architecture", Str("")),
    ("status.nodeInfo", "bootID", Str("")),
    ("status.nodeInfo", "containerRuntimeVersion", Str("")),
    ("status.nodeInfo", "kernelVersion", Str("")),
    ("status.nodeInfo", "kubeProxyVersion", Str("")),
    ("status.nodeInfo", "kubeletVersion", Str("")),
    ("status.nodeInfo", "machineID", Str("")),
    ("status.nodeInfo", "operatingSystem", Str("")),
    ("status.nodeInfo", "osImage", Str("")),
    ("status.nodeInfo", "systemUUID", Str("")),
    ("status.conditions[]", "lastHeartbeatTime", Null),
    ("status.conditions[]", "lastTransitionTime", Null),
];

const NODE_RULES: RuleTable = &[
    ("", &[Rule::Check(taints), Rule::Check(resources)]),
    ("status", &[Rule::Struct(STATUS)]),
    ("spec.podCIDRs[]", &[Rule::EvenEmpty(names::cidr)]),
    ("spec.podCIDRs", &[Rule::Check(one_per_family)]),
];

const STATUS: RuleTable = &[("declaredFeatures", &[Rule::Check(declared_features)])];

const TAINT: RuleTable = &[
    ("key", &[Rule::EvenEmpty(names::qualified)]),
    ("value", &[Rule::Format(names::label_value)]),
    ("effect", &[Rule::Required, Rule::OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"])]),
];

/// Synchronizes the plural field and the singular one. The singular field wins if both are set.
fn pod_cidrs(spec: &mut edit::Members) {
    let one = edit::text(spec, "podCIDR").to_owned();
    let first = spec.get("podCIDRs").and_then(|list| list.get(0)).and_then(Value::as_str);
    match (one.as_str(), first.map(ToOwned::to_owned)) {
        ("", Some(first)) => _ = spec.insert("podCIDR".to_owned(), first.into()),
        ("", None) => {}
        (one, first) if first.as_deref() == Some(one) => {}
        (one, _) => _ = spec.insert("podCIDRs".to_owned(), json!([one])),
    }
}

/// Checks taints. Errors have a path that does not exist, as upstream.
fn taints(object: &Cursor<'_>, errors: &mut Errors) {
    moved("spec.taints", "metadata.taints", errors, |errors| {
        let spec = object.at("spec");
        let mut seen = BTreeSet::new();
        for taint in spec.at("taints").items() {
            table::check(TAINT, &taint, errors);
            let (key, effect) = (taint.at("key").text(), taint.at("effect").text());
            if !seen.insert((key.to_owned(), effect.to_owned())) {
                let mut error = taint.duplicate();
                "taints must be unique by key and effect pair".clone_into(&mut error.detail);
                errors.push(error);
            }
        }
    });
}

/// Checks that amounts are not negative. Paths contain the name of the resource after a dot.
fn resources(object: &Cursor<'_>, errors: &mut Errors) {
    let status = object.at("status");
    for list in ["capacity", "allocatable"] {
        let amounts = status.at(list);
        for (name, _) in amounts.entries() {
            resource_name::check_amount(name, &amounts.at(name), errors);
        }
    }
}

fn one_per_family(cidrs: &Cursor<'_>, errors: &mut Errors) {
    let families: Vec<bool> = cidrs.items().map(|cidr| cidr.text().contains(':')).collect();
    let is_dual = families.len() == 2 && families.first() != families.last();
    if families.len() > 1 && !is_dual {
        errors.push(cidrs.invalid("may specify no more than one CIDR for each IP family"));
    }
}

fn declared_features(features: &Cursor<'_>, errors: &mut Errors) {
    let is_name = |name: &str| {
        let is_word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        name.len() <= 253
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.split('/').all(is_word)
    };
    let mut before: Option<String> = None;
    for feature in features.items() {
        match before.as_deref() {
            Some(before) if before == feature.text() => errors.push(feature.duplicate()),
            Some(before) if before > feature.text() => {
                errors.push(feature.invalid("list must be sorted alphabetically"));
            }
            _ => {}
        }
        if !is_name(feature.text()) {
            errors.push(feature.invalid(format!(
                "invalid feature name {:?}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
                feature.text()
            )));
        }
        before = Some(feature.text().to_owned());
    }
}

fn update_node(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let status = object.at("status");
    table::check(&[("addresses", &[Rule::UniqueItems])], &status, errors);
    let (spec, old) = (object.at("spec"), old.at("spec"));
    let cidrs = spec.at("podCIDRs");
    let old_cidrs = old.at("podCIDRs");
    if !old_cidrs.is_empty() {
        let mut left = cidrs.items();
        let changed =
            old_cidrs.items().filter(|before| left.next().map(|now| now.text()) != Some(before.text()));
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        let is_shorter_or_longer = cidrs.items().count() != old_cidrs.items().count();
        let count = if is_shorter_or_longer { 1 } else { changed.count() };
        errors.extend((0..count).map(|_| cidrs.forbidden(detail)));
    }
    let (id, old_id) = (spec.at("providerID"), old.at("providerID"));
    if !old_id.is_empty() && id.text() != old_id.text() {
        let detail = if id.is_empty() {
            "field cannot be cleared once set"
        } else {
            "field cannot be modified once set"
        };
        let mut error = id.invalid(detail);
        error.bad_value = Some(Value::Null);
        errors.push(error);
    }
    if spec.at("externalID").text() != old.at("externalID").text() {
        errors.push(spec.at("externalID").forbidden("may not be updated"));
    }
}
