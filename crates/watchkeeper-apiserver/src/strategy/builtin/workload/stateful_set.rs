//! `StatefulSet`.

use serde_json::{Value, json};

use super::{
    super::{claim, row::StrategyRow},
    CONDITION_TIMES, WORKLOAD, status, template, template_defaults,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr, Str},
    },
    names::{self, NameRule},
    table::{
        self,
        Rule::{AtLeast, AtMostAll, Check, Enum, Format, Immutable, IntOrPercent, Pointer, Struct},
        RuleTable,
    },
};

pub(super) const STATEFUL_SET: StrategyRow = StrategyRow {
    names: NameRule::Label,
    defaults,
    zeros: &[
        ("", "status", EmptyObject),
        ("spec", "serviceName", Str("")),
        ("status", "replicas", IntPtr(0)),
        ("status", "availableReplicas", IntPtr(0)),
        CONDITION_TIMES,
    ],
    table: &[("spec", &[Struct(SPEC)])],
    status_table: &[("status", &[Struct(status::STATEFUL_SET)])],
    ..WORKLOAD
};

const SPEC: RuleTable = &[
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

const PACE: RuleTable =
    &[("partition", &[AtLeast(0)]), ("maxUnavailable", &[IntOrPercent, Check(not_zero), AtMostAll])];

fn defaults(object: &mut Value) {
    edit::object(object, "spec");
    let has_type =
        object.pointer("/spec/updateStrategy/type").and_then(Value::as_str).is_some_and(|ty| !ty.is_empty());
    edit::fill_all(
        object,
        &[
            ("spec", "podManagementPolicy", Str("OrderedReady")),
            ("spec", "updateStrategy", EmptyObject),
            ("spec.updateStrategy", "type", Str("RollingUpdate")),
        ],
    );
    if !has_type {
        edit::fill_all(object, &[("spec.updateStrategy", "rollingUpdate", EmptyObject)]);
    }
    let strategy = object.pointer("/spec/updateStrategy/type").and_then(Value::as_str);
    if strategy == Some("RollingUpdate") {
        edit::fill_all(object, &[("spec.updateStrategy.rollingUpdate", "partition", IntPtr(0))]);
        edit::fill_all(object, &[("spec.updateStrategy.rollingUpdate", "maxUnavailable", IntPtr(1))]);
    }
    // The kind of a claim template is fixed, whatever a client sends.
    edit::each(object, "spec.volumeClaimTemplates[]", &mut |claim| {
        claim.insert("apiVersion".to_owned(), "v1".into());
        claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
    });
    edit::fill_all(
        object,
        &[
            ("spec", "persistentVolumeClaimRetentionPolicy", EmptyObject),
            ("spec.persistentVolumeClaimRetentionPolicy", "whenDeleted", Str("Retain")),
            ("spec.persistentVolumeClaimRetentionPolicy", "whenScaled", Str("Retain")),
            ("spec", "replicas", IntPtr(1)),
            ("spec", "revisionHistoryLimit", IntPtr(10)),
            ("spec.volumeClaimTemplates[]", "spec", EmptyObject),
            ("spec.volumeClaimTemplates[]", "status", EmptyObject),
            ("spec.volumeClaimTemplates[].status", "phase", Str("Pending")),
            ("spec.volumeClaimTemplates[].spec", "volumeMode", Str("Filesystem")),
        ],
    );
    template_defaults(object);
}

fn management_policy(policy: &Cursor<'_>, errors: &mut Errors) {
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(policy.missing("")),
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
}

fn strategy(strategy: &Cursor<'_>, errors: &mut Errors) {
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

fn not_zero(count: &Cursor<'_>, errors: &mut Errors) {
    if count.is_set() && table::number_or_percent(count) == 0 {
        errors.push(count.invalid("cannot be 0"));
    }
}

/// Checks the template as completed by the controller: claim templates become volumes, and host names are set.
fn completed_template(spec: &Cursor<'_>, errors: &mut Errors) {
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
            let claim_volumes = claims
                .into_iter()
                .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
            volumes.splice(0..0, claim_volumes);
        }
    }
    let whole = json!({ "spec": completed });
    let root = Cursor::root(&whole);
    template::selected(&root.at("spec"), "statefulset", "StatefulSet", errors);
    // Upstream checks the labels and annotations of this template twice.
    super::pod::template_metadata(&root.at("spec").at("template"), errors);
}
