//! Kinds that keep a number of pods running.

use serde_json::Value;

use super::{
    pod,
    row::{PLAIN, Row, StatusMeta},
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self, Fill,
        Lit::{N, O, S, Z},
    },
    metadata,
    names::{self, NameRule},
};

/// The row of a kind of the group `apps`.
pub(super) fn find(kind: &str) -> Option<Row> {
    Some(match kind {
        "Deployment" => DEPLOYMENT,
        "ReplicaSet" => REPLICA_SET,
        "DaemonSet" => DAEMON_SET,
        "StatefulSet" => STATEFUL_SET,
        "ControllerRevision" => CONTROLLER_REVISION,
        _ => return None,
    })
}

const WORKLOAD: Row = Row {
    generation: &["spec"],
    status: Some(|| None),
    warnings: |object, old| pod::template_warnings(&["spec", "template"], object, old),
    ..PLAIN
};

const DEPLOYMENT: Row = Row {
    generation: &["spec", "metadata.annotations"],
    status_meta: StatusMeta::OldLabels,
    defaults: |object| {
        edit::fill_all(object, DEPLOYMENT_DEFAULTS);
        rolling(object, "strategy", &[("", "maxUnavailable", S("25%")), ("", "maxSurge", S("25%"))]);
        template_defaults(object);
    },
    zeros: &[("", "status", O), CONDITION_TIMES, ("status.conditions[]", "lastUpdateTime", Z)],
    validate: validate_deployment,
    validate_update: same_selector,
    validate_status: status_counts,
    ..WORKLOAD
};

const REPLICA_SET: Row = Row {
    defaults: |object| {
        edit::fill_all(object, &[("spec", "replicas", N(1))]);
        template_defaults(object);
    },
    zeros: &[("", "status", O), ("status", "replicas", N(0)), CONDITION_TIMES],
    validate: |object, errors| {
        counts(&object.at("spec"), &["replicas", "minReadySeconds"], errors);
        selected_template(&object.at("spec"), "replicaset", "ReplicaSet", errors);
    },
    validate_update: same_selector,
    validate_status: status_counts,
    ..WORKLOAD
};

const DAEMON_SET: Row = Row {
    generation: &["spec"],
    defaults: |object| {
        edit::fill_all(object, &[("spec", "updateStrategy", O), ("spec", "revisionHistoryLimit", N(10))]);
        rolling(object, "updateStrategy", &[("", "maxUnavailable", N(1)), ("", "maxSurge", N(0))]);
        template_defaults(object);
    },
    zeros: &[
        ("", "status", O),
        ("status", "currentNumberScheduled", N(0)),
        ("status", "numberMisscheduled", N(0)),
        ("status", "desiredNumberScheduled", N(0)),
        ("status", "numberReady", N(0)),
        CONDITION_TIMES,
    ],
    validate: validate_daemon_set,
    validate_update: same_selector,
    ..WORKLOAD
};

const STATEFUL_SET: Row = Row {
    names: NameRule::Label,
    defaults: stateful_set_defaults,
    zeros: &[
        ("", "status", O),
        ("spec", "serviceName", S("")),
        ("status", "replicas", N(0)),
        ("status", "availableReplicas", N(0)),
        CONDITION_TIMES,
    ],
    validate: validate_stateful_set,
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        for member in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
            spec.at(member).immutable(&old.at(member), errors);
        }
    },
    validate_status: status_counts,
    ..WORKLOAD
};

const CONTROLLER_REVISION: Row = Row {
    zeros: &[("", "revision", N(0)), ("", "data", Z)],
    validate: |object, errors| {
        let data = object.at("data");
        if !data.is_set() {
            errors.push(data.missing("data is mandatory"));
        }
        object.at("revision").at_least(0, errors);
    },
    validate_update: |object, old, errors| object.at("data").immutable(&old.at("data"), errors),
    ..PLAIN
};

pub(super) const REPLICATION_CONTROLLER: Row = Row {
    defaults: |object| {
        edit::fill_all(object, &[("spec", "replicas", N(1))]);
        let labels = object.pointer("/spec/template/metadata/labels").cloned();
        if let Some(labels) =
            labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        {
            for path in [&["spec", "selector"], &["metadata", "labels"]] {
                if let Some(members) = edit::object_at(object, path)
                    && members.is_empty()
                {
                    members.extend(labels.as_object().cloned().unwrap_or_default());
                }
            }
        }
        template_defaults(object);
    },
    zeros: &[("", "status", O), ("status", "replicas", N(0)), CONDITION_TIMES],
    validate: validate_replication_controller,
    validate_status: status_counts,
    ..WORKLOAD
};

const CONDITION_TIMES: Fill = ("status.conditions[]", "lastTransitionTime", Z);

const DEPLOYMENT_DEFAULTS: &[Fill] = &[
    ("spec", "replicas", N(1)),
    ("spec", "strategy", O),
    ("spec", "revisionHistoryLimit", N(10)),
    ("spec", "progressDeadlineSeconds", N(600)),
];

fn template_defaults(object: &mut Value) {
    if let Some(template) = object.pointer_mut("/spec/template") {
        pod::template_defaults(template);
    }
}

/// A strategy rolls unless it says otherwise, at the pace of `table` unless it says otherwise.
fn rolling(object: &mut Value, member: &str, table: &[Fill]) {
    let Some(strategy) = object.get_mut("spec").and_then(|spec| spec.get_mut(member)) else { return };
    edit::fill_all(strategy, &[("", "type", S("RollingUpdate"))]);
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
        edit::object(strategy, "rollingUpdate");
        if let Some(update) = strategy.get_mut("rollingUpdate") {
            edit::fill_all(update, table);
        }
    }
}

fn stateful_set_defaults(object: &mut Value) {
    let has_type =
        object.pointer("/spec/updateStrategy/type").and_then(Value::as_str).is_some_and(|ty| !ty.is_empty());
    edit::fill_all(
        object,
        &[
            ("spec", "podManagementPolicy", S("OrderedReady")),
            ("spec", "updateStrategy", O),
            ("spec.updateStrategy", "type", S("RollingUpdate")),
        ],
    );
    if !has_type {
        edit::fill_all(object, &[("spec.updateStrategy", "rollingUpdate", O)]);
    }
    let strategy = object.pointer("/spec/updateStrategy/type").and_then(Value::as_str);
    if strategy == Some("RollingUpdate") {
        edit::fill_all(object, &[("spec.updateStrategy.rollingUpdate", "partition", N(0))]);
        edit::fill_all(object, &[("spec.updateStrategy.rollingUpdate", "maxUnavailable", N(1))]);
    }
    edit::fill_all(
        object,
        &[
            ("spec", "persistentVolumeClaimRetentionPolicy", O),
            ("spec.persistentVolumeClaimRetentionPolicy", "whenDeleted", S("Retain")),
            ("spec.persistentVolumeClaimRetentionPolicy", "whenScaled", S("Retain")),
            ("spec", "replicas", N(1)),
            ("spec", "revisionHistoryLimit", N(10)),
            ("spec.volumeClaimTemplates[]", "apiVersion", S("v1")),
            ("spec.volumeClaimTemplates[]", "kind", S("PersistentVolumeClaim")),
            ("spec.volumeClaimTemplates[]", "status", O),
            ("spec.volumeClaimTemplates[].status", "phase", S("Pending")),
            ("spec.volumeClaimTemplates[].spec", "volumeMode", S("Filesystem")),
        ],
    );
    template_defaults(object);
}

/// Numbers that must not be negative.
fn counts(of: &At<'_>, members: &[&str], errors: &mut Errors) {
    for member in members {
        of.at(member).at_least(0, errors);
    }
}

/// Numbers of a status must not be negative, and a part not more than all.
fn status_counts(object: &At<'_>, _old: &At<'_>, errors: &mut Errors) {
    let status = object.at("status");
    let parts =
        ["fullyLabeledReplicas", "readyReplicas", "availableReplicas", "updatedReplicas", "currentReplicas"];
    counts(&status, &["replicas", "observedGeneration", "unavailableReplicas"], errors);
    counts(&status, &parts, errors);
    let all = status.at("replicas").int().unwrap_or(0);
    for part in parts {
        let part = status.at(part);
        if part.int().is_some_and(|count| count > all) {
            errors.push(part.invalid("cannot be greater than status.replicas"));
        }
    }
    let ready = status.at("readyReplicas").int().unwrap_or(0);
    let available = status.at("availableReplicas");
    if available.int().is_some_and(|count| count > ready) {
        errors.push(available.invalid("cannot be greater than readyReplicas"));
    }
}

/// A selector that selects, and a template it selects; pods of it run always.
fn selected_template(spec: &At<'_>, kind: &str, title: &str, errors: &mut Errors) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if selector.is_set() {
        metadata::label_selector(&selector, errors);
        if selector.at("matchLabels").is_empty() && selector.at("matchExpressions").is_empty() {
            errors.push(selector.invalid(format!("empty selector is invalid for {kind}")));
        }
    } else {
        errors.push(selector.missing(""));
    }
    let own = template.at("metadata");
    let labels = own.at("labels");
    if selector.is_set() && !metadata::selects(&selector, &labels) {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    pod::template(&template, errors);
    always_running(&template, title, errors);
}

fn always_running(template: &At<'_>, title: &str, errors: &mut Errors) {
    let spec = template.at("spec");
    spec.at("restartPolicy").one_of(&["Always"], errors);
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.is_set() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {title} is not Supported")));
    }
}

fn same_selector(object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, old) = (object.at("spec"), old.at("spec"));
    spec.at("selector").immutable(&old.at("selector"), errors);
}

fn validate_deployment(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    counts(
        &spec,
        &["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
        errors,
    );
    selected_template(&spec, "deployment", "ReplicaSet", errors);
    let strategy = spec.at("strategy");
    let update = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" if update.is_set() => {
            errors.push(update.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "RollingUpdate" => pace(&update, errors),
        "Recreate" => {}
        _ => errors.push(strategy.at("type").unsupported(&["Recreate", "RollingUpdate"])),
    }
    let deadline = spec.at("progressDeadlineSeconds");
    let ready = spec.at("minReadySeconds").int().unwrap_or(0);
    if deadline.int().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

/// A number, or a share of all, that is not negative and not more than all. Answers the number or share.
pub(super) fn int_or_percent(at: &At<'_>, errors: &mut Errors) -> Option<i64> {
    if let Some(number) = at.int() {
        at.at_least(0, errors);
        return Some(number);
    }
    if !at.value.is_string() {
        return None;
    }
    let share = at.text().strip_suffix('%').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let share = share.and_then(|digits| digits.parse().ok());
    match share {
        None => errors.push(at.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        )),
        Some(share) if share > 100 => errors.push(at.invalid("must not be greater than 100%")),
        Some(_) => {}
    }
    share
}

fn pace(update: &At<'_>, errors: &mut Errors) {
    if !update.is_set() {
        errors.push(update.missing("this should be defaulted and never be nil"));
        return;
    }
    let (unavailable, surge) = (update.at("maxUnavailable"), update.at("maxSurge"));
    let down = int_or_percent(&unavailable, errors);
    // More than twice as many for a moment is allowed.
    let up = match surge.int() {
        Some(number) => {
            surge.at_least(0, errors);
            Some(number)
        }
        None => surge
            .text()
            .strip_suffix('%')
            .and_then(|digits| digits.parse().ok())
            .or_else(|| int_or_percent(&surge, errors)),
    };
    if down == Some(0) && up == Some(0) {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
}

fn validate_daemon_set(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    counts(&spec, &["minReadySeconds", "revisionHistoryLimit"], errors);
    selected_template(&spec, "daemonset", "DaemonSet", errors);
    let strategy = spec.at("updateStrategy");
    let update = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let unavailable = update.at("maxUnavailable");
            let down = int_or_percent(&unavailable, errors);
            let up = int_or_percent(&update.at("maxSurge"), errors);
            match (down, up) {
                (Some(0), Some(0)) => errors.push(unavailable.invalid("cannot be 0 when maxSurge is 0")),
                (Some(1..), Some(1..)) => errors
                    .push(update.at("maxSurge").invalid("may not be set when maxUnavailable is non-zero")),
                _ => {}
            }
        }
        _ => errors.push(strategy.at("type").unsupported(&["RollingUpdate", "OnDelete"])),
    }
}

fn validate_stateful_set(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    counts(&spec, &["replicas", "minReadySeconds"], errors);
    let policy = spec.at("podManagementPolicy");
    if !matches!(policy.text(), "OrderedReady" | "Parallel") {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let strategy = spec.at("updateStrategy");
    let update = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" if update.is_set() => {
            errors.push(update.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            update.at("partition").at_least(0, errors);
            let unavailable = update.at("maxUnavailable");
            if int_or_percent(&unavailable, errors) == Some(0) {
                errors.push(unavailable.invalid("cannot be 0"));
            }
        }
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
    let retention = spec.at("persistentVolumeClaimRetentionPolicy");
    for member in ["whenDeleted", "whenScaled"] {
        retention.at(member).required_one_of(&["Retain", "Delete"], errors);
    }
    spec.at("ordinals").at("start").at_least(0, errors);
    spec.at("serviceName").format(names::dns_label, errors);
    stateful_template(&spec, errors);
}

/// Claims made from templates are volumes of the pods, and host names are given by the controller.
fn stateful_template(spec: &At<'_>, errors: &mut Errors) {
    let mut completed = spec.value.clone();
    let claims: Vec<Value> = spec
        .at("volumeClaimTemplates")
        .items()
        .filter_map(|claim| claim.at("metadata").value.get("name").cloned())
        .collect();
    if let Some(Value::Object(pod)) = completed.pointer_mut("/template/spec") {
        pod.remove("subdomain");
        pod.remove("hostname");
        let volumes = pod.entry("volumes").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(volumes) = volumes {
            volumes.retain(|volume| volume.get("name").is_none_or(|name| !claims.contains(name)));
            volumes.extend(
                claims.into_iter().map(
                    |name| serde_json::json!({"name": name, "persistentVolumeClaim": {"claimName": name}}),
                ),
            );
        }
    }
    let whole = serde_json::json!({ "spec": completed });
    let root = At::root(&whole);
    selected_template(&root.at("spec"), "statefulset", "StatefulSet", errors);
}

fn validate_replication_controller(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    counts(&spec, &["replicas", "minReadySeconds"], errors);
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    selector.required(errors);
    if !template.is_set() {
        errors.push(template.missing(""));
        return;
    }
    let own = template.at("metadata");
    let labels = own.at("labels");
    let is_selected = selector.entries().all(|(name, value)| labels.key(name).value == value.value);
    if !is_selected {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    pod::template(&template, errors);
    always_running(&template, "ReplicationController", errors);
}
