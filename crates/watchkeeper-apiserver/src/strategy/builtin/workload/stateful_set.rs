//! `StatefulSet`.

use serde_json::{Value, json};

use super::{
    super::{claim, row::Row},
    CONDITION_TIMES, WORKLOAD, status, template, template_defaults,
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self,
        DefaultValue::{N, O, S},
    },
    names::{self, NameRule},
    table::{
        self,
        Rule::{AtLeast, AtMostAll, Check, Enum, Format, Immutable, IntOrPercent, Pointer, Struct},
        Table,
    },
};

pub(super) const STATEFUL_SET: Row = Row {
    names: NameRule::Label,
    defaults,
    zeros: &[
        ("", "status", O),
        ("spec", "serviceName", S("")),
        ("status", "replicas", N(0)),
        ("status", "availableReplicas", N(0)),
        CONDITION_TIMES,
    ],
    table: &[("spec", &[Struct(SPEC)])],
    status_table: &[("status", &[Struct(status::STATEFUL_SET)])],
    ..WORKLOAD
};

const SPEC: Table = &[
    ("podManagementPolicy", &[Check(management_policy)]),
    ("updateStrategy", &[Check(strategy)]),
    (
        "persistentVolumeClaimRetentionPolicy",
        &[Pointer(&[
            ("whenDeleted", &[Enum(&["Retain", "Delete"])]),
            ("whenScaled", &[Enum(&["Retain", "Delete"])]),
        ])],
    ),
    ("volumeClaimTemplates[].spec", &[Check(claim::claim_spec)]),
    ("replicas", &[AtLeast(0)]),
    ("minReadySeconds", &[AtLeast(0)]),
    ("ordinals.start", &[AtLeast(0)]),
    ("serviceName", &[Format(names::dns_label)]),
    ("", &[Check(completed_template)]),
    ("selector", &[Immutable]),
    ("volumeClaimTemplates", &[Immutable]),
    ("serviceName", &[Immutable]),
    ("podManagementPolicy", &[Immutable]),
];

const PACE: Table =
    &[("partition", &[AtLeast(0)]), ("maxUnavailable", &[IntOrPercent, Check(not_zero), AtMostAll])];

fn defaults(object: &mut Value) {
    edit::object(object, "spec");
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
    // The kind of a claim template is fixed, whatever a client sends.
    edit::each(object, "spec.volumeClaimTemplates[]", &mut |claim| {
        claim.insert("apiVersion".to_owned(), "v1".into());
        claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
    });
    edit::fill_all(
        object,
        &[
            ("spec", "persistentVolumeClaimRetentionPolicy", O),
            ("spec.persistentVolumeClaimRetentionPolicy", "whenDeleted", S("Retain")),
            ("spec.persistentVolumeClaimRetentionPolicy", "whenScaled", S("Retain")),
            ("spec", "replicas", N(1)),
            ("spec", "revisionHistoryLimit", N(10)),
            ("spec.volumeClaimTemplates[]", "spec", O),
            ("spec.volumeClaimTemplates[]", "status", O),
            ("spec.volumeClaimTemplates[].status", "phase", S("Pending")),
            ("spec.volumeClaimTemplates[].spec", "volumeMode", S("Filesystem")),
        ],
    );
    template_defaults(object);
}

fn management_policy(policy: &At<'_>, errors: &mut Errors) {
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(policy.missing("")),
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
}

fn strategy(strategy: &At<'_>, errors: &mut Errors) {
    let update = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "" => errors.push(strategy.missing("")),
        "OnDelete" if update.is_set() => {
            errors.push(update.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "RollingUpdate" if update.is_set() => table::check(PACE, &update, errors),
        "OnDelete" | "RollingUpdate" => {}
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
}

fn not_zero(count: &At<'_>, errors: &mut Errors) {
    if count.is_set() && table::number_or_percent(count) == 0 {
        errors.push(count.invalid("cannot be 0"));
    }
}

/// Checks the template as completed by the controller: claim templates become volumes, and host names are set.
fn completed_template(spec: &At<'_>, errors: &mut Errors) {
    let mut completed = spec.value.clone();
    let claims: Vec<Value> = spec
        .at("volumeClaimTemplates")
        .items()
        .map(|claim| claim.at("metadata").at("name").text().into())
        .collect();
    if let Some(Value::Object(pod)) = completed.pointer_mut("/template/spec") {
        pod.remove("subdomain");
        pod.remove("hostname");
        let volumes = pod.entry("volumes").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(volumes) = volumes {
            volumes.retain(|volume| volume.get("name").is_none_or(|name| !claims.contains(name)));
            let made = claims
                .into_iter()
                .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
            volumes.splice(0..0, made);
        }
    }
    let whole = json!({ "spec": completed });
    let root = At::root(&whole);
    template::selected(&root.at("spec"), "statefulset", "StatefulSet", errors);
    // Upstream checks the labels and annotations of this template twice.
    super::pod::template_metadata(&root.at("spec").at("template"), errors);
}
