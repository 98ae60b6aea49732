//! Nodes, leases, events, accounts, quotas: what a cluster keeps about itself.

use serde_json::{Value, json};

use super::{
    pod,
    row::{CLUSTER, PLAIN, Row},
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self,
        Lit::{N, O, S, Z},
        Members,
    },
    names::{self, NameRule},
    quantity,
};

/// The row of a kind of the groups `coordination.k8s.io` and `node.k8s.io`.
pub(super) fn find(kind: &str) -> Option<Row> {
    Some(match kind {
        "Lease" => LEASE,
        "RuntimeClass" => Row {
            creates_on_update: true,
            takes_unconditional_update: false,
            validate: |object, errors| object.at("handler").required_format(names::dns_label, errors),
            validate_update: |object, old, errors| object.at("handler").immutable(&old.at("handler"), errors),
            ..CLUSTER
        },
        _ => return None,
    })
}

const LEASE: Row = Row {
    creates_on_update: true,
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    zeros: &[("", "spec", O)],
    validate: |object, errors| {
        let spec = object.at("spec");
        let duration = spec.at("leaseDurationSeconds");
        if duration.int().is_some_and(|seconds| seconds <= 0) {
            errors.push(duration.invalid("must be greater than 0"));
        }
        spec.at("leaseTransitions").at_least(0, errors);
        let preferred = spec.at("preferredHolder");
        if !preferred.is_empty() && spec.at("strategy").is_empty() {
            errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
        }
    },
    ..PLAIN
};

pub(super) const SERVICE_ACCOUNT: Row = Row { delete_returns_object: true, ..PLAIN };

pub(super) const NODE: Row = Row {
    status: None,
    defaults: |object| {
        edit::each(object, "status.capacity|allocatable", &mut quantity::canonicalize);
        let capacity = object.pointer("/status/capacity").filter(|capacity| capacity.is_object()).cloned();
        if let (Some(capacity), Some(status)) = (capacity, edit::object(object, "status")) {
            status.entry("allocatable").or_insert(capacity);
        }
    },
    zeros: NODE_ZEROS,
    prepare_create: |object| {
        // A new node is not ready until its kubelet says so.
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
    validate: validate_node,
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        for member in ["podCIDR", "podCIDRs", "providerID"] {
            let (new, old) = (spec.at(member), old.at(member));
            if !old.is_empty() && new.value != old.value {
                errors
                    .push(new.forbidden("node updates may not change this field except from \"\" to valid"));
            }
        }
    },
    ..CLUSTER
};

const NODE_ZEROS: &[edit::Fill] = &[
    ("", "spec", O),
    ("", "status", O),
    ("status", "daemonEndpoints", O),
    ("status.daemonEndpoints", "kubeletEndpoint", O),
    ("status.daemonEndpoints.kubeletEndpoint", "Port", N(0)),
    ("status", "nodeInfo", O),
    ("status.nodeInfo", "architecture", S("")),
    ("status.nodeInfo", "bootID", S("")),
    ("status.nodeInfo", "containerRuntimeVersion", S("")),
    ("status.nodeInfo", "kernelVersion", S("")),
    ("status.nodeInfo", "kubeProxyVersion", S("")),
    ("status.nodeInfo", "kubeletVersion", S("")),
    ("status.nodeInfo", "machineID", S("")),
    ("status.nodeInfo", "operatingSystem", S("")),
    ("status.nodeInfo", "osImage", S("")),
    ("status.nodeInfo", "systemUUID", S("")),
    ("status.conditions[]", "lastHeartbeatTime", Z),
    ("status.conditions[]", "lastTransitionTime", Z),
];

fn validate_node(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let taints = spec.at("taints");
    let mut seen = std::collections::BTreeSet::new();
    for taint in taints.items() {
        let (key, effect) = (taint.at("key"), taint.at("effect"));
        key.required_format(names::qualified, errors);
        taint.at("value").format(names::label_value, errors);
        effect.required_one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        if !seen.insert((key.text().to_owned(), effect.text().to_owned())) {
            errors.push(taint.duplicate());
        }
    }
    for cidr in spec.at("podCIDRs").items() {
        cidr.format(names::cidr, errors);
    }
}

pub(super) const RESOURCE_QUOTA: Row = Row {
    delete_returns_object: true,
    status: Some(|| None),
    defaults: |object| edit::each(object, "spec|status.hard|used", &mut quantity::canonicalize),
    zeros: &[("", "spec", O), ("", "status", O)],
    validate: |object, errors| {
        let spec = object.at("spec");
        let hard = spec.at("hard");
        for (name, amount) in hard.entries() {
            errors.extend(names::qualified(name).into_iter().map(|detail| amount.invalid(detail)));
            pod::amount(&amount, errors);
        }
        for scope in spec.at("scopes").items() {
            let scopes = [
                "BestEffort",
                "CrossNamespacePodAffinity",
                "NotBestEffort",
                "NotTerminating",
                "PriorityClass",
                "Terminating",
                "VolumeAttributesClass",
            ];
            if !scopes.contains(&scope.text()) {
                errors.push(spec.at("scopes").invalid("unsupported scope"));
            }
        }
    },
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        spec.at("scopes").immutable(&old.at("scopes"), errors);
    },
    ..PLAIN
};

pub(super) const LIMIT_RANGE: Row = Row {
    creates_on_update: true,
    defaults: |object| edit::each(object, "spec.limits[]", &mut limit_defaults),
    zeros: &[("", "spec", O)],
    validate: |object, errors| {
        let spec = object.at("spec");
        for limit in spec.at("limits").items() {
            limit.at("type").required(errors);
            let (least, most) = (limit.at("min"), limit.at("max"));
            for (name, amount) in least.entries() {
                let bound = most.key(name);
                let amounts = (
                    quantity::Quantity::from_value(amount.value),
                    quantity::Quantity::from_value(bound.value),
                );
                if let (Some(low), Some(high)) = amounts
                    && low > high
                {
                    errors.push(amount.invalid(format!(
                        "min value {} is greater than max value {}",
                        low.canonical(),
                        high.canonical()
                    )));
                }
            }
        }
    },
    ..PLAIN
};

fn limit_defaults(limit: &mut Members) {
    for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if let Some(Value::Object(amounts)) = limit.get_mut(list) {
            quantity::canonicalize(amounts);
        }
    }
    if edit::text(limit, "type") != "Container" {
        return;
    }
    for (target, sources) in [("default", &["max"][..]), ("defaultRequest", &["default", "min"][..])] {
        for source in sources {
            let Some(Value::Object(amounts)) = limit.get(*source).cloned() else { continue };
            let members = limit.entry(target).or_insert_with(|| json!({}));
            if let Value::Object(members) = members {
                for (name, amount) in amounts {
                    members.entry(name).or_insert(amount);
                }
            }
        }
    }
}

pub(super) const EVENT: Row = Row {
    names: NameRule::PathSegment,
    creates_on_update: true,
    zeros: &[
        ("", "involvedObject", O),
        ("", "source", O),
        ("", "firstTimestamp", Z),
        ("", "lastTimestamp", Z),
        ("", "eventTime", Z),
        ("", "reportingComponent", S("")),
        ("", "reportingInstance", S("")),
    ],
    validate: |object, errors| event(object, &EVENT_FIELDS, errors),
    ..PLAIN
};

pub(super) const NEW_EVENT: Row = Row {
    names: NameRule::Subdomain,
    zeros: &[
        ("", "eventTime", Z),
        ("", "deprecatedSource", O),
        ("", "deprecatedFirstTimestamp", Z),
        ("", "deprecatedLastTimestamp", Z),
        ("", "regarding", O),
    ],
    validate: |object, errors| event(object, &NEW_EVENT_FIELDS, errors),
    validate_create: |object, errors| {
        let time = object.at("eventTime");
        if !time.is_set() {
            errors.push(time.missing(""));
        }
        let kind = object.at("type");
        if !matches!(kind.text(), "Normal" | "Warning") {
            errors.push(kind.invalid(format!("has invalid value: {}", kind.text())));
        }
        let series = object.at("series");
        if series.is_set() && series.at("count").int().unwrap_or(0) < 2 {
            errors.push(series.at("count").invalid("should be at least 2"));
        }
    },
    validate_update: |object, old, errors| {
        for member in [
            "regarding",
            "reason",
            "note",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingController",
            "reportingInstance",
        ] {
            let (new, old) = (object.at(member), old.at(member));
            if new.value != old.value && !(new.is_empty() && old.is_empty()) {
                errors.push(new.invalid("field is immutable"));
            }
        }
    },
    ..EVENT
};

/// What the two versions of events call the same things.
struct EventFields {
    about: &'static str,
    controller: &'static str,
    note: &'static str,
}

const EVENT_FIELDS: EventFields =
    EventFields { about: "involvedObject", controller: "reportingComponent", note: "message" };
const NEW_EVENT_FIELDS: EventFields =
    EventFields { about: "regarding", controller: "reportingController", note: "note" };

fn event(object: &At<'_>, fields: &EventFields, errors: &mut Errors) {
    let metadata = object.at("metadata");
    let home = metadata.at("namespace").text();
    let about = object.at(fields.about);
    let namespace = about.at("namespace");
    let has_time = object.at("eventTime").is_set();
    let fits = match namespace.text() {
        "" if has_time => matches!(home, "default" | "kube-system"),
        "" => matches!(home, "" | "default"),
        // New events may be about another namespace than the one they are kept in.
        other => has_time || other == home,
    };
    if !fits {
        let mut error = namespace.invalid("does not match event.namespace");
        // One path for both: the internal one.
        "involvedObject.namespace".clone_into(&mut error.path);
        error.bad_value = Some(namespace.text().into());
        errors.push(error);
    }
    if !has_time {
        return;
    }
    object.at(fields.controller).required_format(names::qualified, errors);
    for (member, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        let member = object.at(member);
        member.required(errors);
        if member.text().len() > most {
            errors.push(member.invalid(format!("can have at most {most} characters")));
        }
    }
    let note = object.at(fields.note);
    if note.text().len() > 1024 {
        let mut error = note.invalid("can have at most 1024 characters");
        "message".clone_into(&mut error.path);
        errors.push(error);
    }
}
