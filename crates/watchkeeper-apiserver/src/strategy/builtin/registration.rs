//! API services and storage version migrations.

use serde_json::json;

use super::{
    condition,
    row::{CLUSTER, StatusMetadata, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr},
    },
    names::{self, NameRule},
    table::{self, Rule, RuleTable},
};

pub(super) const API_SERVICE: StrategyRow = StrategyRow {
    names: NameRule::PathSegment,
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    defaults: |object| edit::fill_all(object, &[("spec.service", "port", IntPtr(443))]),
    zeros: &[("", "spec", EmptyObject), ("", "status", EmptyObject)],
    // A group that this server serves itself is immediately available.
    set_request_fields: |part, object, old, context| {
        let is_local = object.pointer("/spec/service").is_none_or(serde_json::Value::is_null);
        if part == crate::strategy::Part::Main && old.is_none() && is_local {
            object["status"] = json!({"conditions": [{
                "type": "Available", "status": "True", "reason": "Local",
                "message": "Local APIServices are always available", "lastTransitionTime": context.now,
            }]});
        }
    },
    validate: |object, errors| {
        let (spec, metadata) = (object.at("spec"), object.at("metadata"));
        let expected = format!("{}.{}", spec.at("version").text(), spec.at("group").text());
        let name = metadata.at("name");
        if !name.is_empty() && name.text() != expected {
            errors.push(name.invalid(format!("must be `spec.version+\".\"+spec.group`: {expected:?}")));
        }
        table::check(SERVICE_SPEC, &spec, errors);
    },
    status_table: &[("status.conditions[].status", &[Rule::Enum(&["True", "False", "Unknown"])])],
    ..CLUSTER
};

const SERVICE_SPEC: RuleTable = &[
    (
        "",
        &[Rule::Check(|spec, errors| {
            if spec.at("group").is_empty() && spec.at("version").text() != "v1" {
                errors.push(
                    spec.at("group").missing("only v1 may have an empty group and it better be legacy kube"),
                );
            }
        })],
    ),
    ("group", &[Rule::Format(names::dns_subdomain)]),
    ("version", &[Rule::EvenEmpty(names::dns_1035_label)]),
    ("groupPriorityMinimum", &[Rule::InRange(1, 20_000)]),
    ("versionPriority", &[Rule::InRange(1, 1000)]),
    ("", &[Rule::Check(service)]),
];

fn service(spec: &Cursor<'_>, errors: &mut Errors) {
    let (service, bundle) = (spec.at("service"), spec.at("caBundle"));
    let skips = spec.at("insecureSkipTLSVerify");
    if !service.is_set() {
        if !bundle.is_empty() {
            errors.push(bundle.invalid("local APIServices may not have a caBundle"));
        }
        if skips.is_true() {
            errors.push(skips.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    table::check(SERVICE, &service, errors);
    if skips.is_true() && !bundle.is_empty() {
        errors.push(skips.invalid("may not be true if caBundle is present"));
    }
}

const SERVICE: RuleTable =
    &[("namespace", &[Rule::Required]), ("name", &[Rule::Required]), ("port", &[Rule::InRange(1, 65535)])];

pub(super) const STORAGE_VERSION_MIGRATION: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    zeros: &[("", "status", EmptyObject)],
    table: &[
        (
            "spec.resource.resource",
            &[Rule::RequiredAs("resource is required to be set"), Rule::Format(names::dns_1035_label)],
        ),
        ("spec.resource.group", &[Rule::Format(names::dns_subdomain)]),
        ("spec", &[Rule::Immutable]),
    ],
    status_table: &[("status.conditions", &[Rule::Check(condition::conditions)])],
    validate_status: |object, old, errors| {
        let (status, old) = (object.at("status"), old.at("status"));
        let version = status.at("resourceVersion");
        if !version.is_empty() && !is_version(version.text()) {
            errors.push(version.invalid("resource version is not well formed"));
        }
        if !old.at("resourceVersion").is_empty() && old.at("resourceVersion").text() != version.text() {
            errors.push(version.invalid("field is immutable"));
        }
        let conditions = status.at("conditions");
        let has = |kind: &str| condition::is_true(&conditions, kind);
        if has("Succeeded") && has("Failed") {
            errors.push(
                conditions.invalid("Both success and failed conditions cannot be true at the same time"),
            );
        }
        for (kind, word) in [("Succeeded", "Success"), ("Failed", "Failed")] {
            if condition::is_true(&old.at("conditions"), kind) && !has(kind) {
                errors.push(
                    conditions.invalid(format!("{word} condition cannot be set to false once it is true")),
                );
            }
        }
    },
    ..CLUSTER
};

/// Returns whether a resourceVersion is comparable: a decimal number without leading zeros.
fn is_version(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}
