//! Kinds that register things with the server: webhooks, policies, services of API, flow control, certificates, devices.

use serde_json::{Value, json};

use super::row::{CLUSTER, PLAIN, Row, StatusMeta};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self, Fill,
        Lit::{I, N, O, S},
    },
    names::{self, NameRule},
};

/// The row of a kind of a group without a file of its own.
pub(super) fn find(group: &str, kind: &str) -> Option<Row> {
    let has_status =
        Row { status: Some(|| None), status_meta: StatusMeta::Old, zeros: &[("", "status", O)], ..CLUSTER };
    Some(match (group, kind) {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => WEBHOOKS,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => Row {
            defaults: |object| {
                webhook_defaults(object);
                edit::fill_all(object, &[("webhooks[]", "reinvocationPolicy", S("Never"))]);
            },
            ..WEBHOOKS
        },
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => Row {
            generation: &["spec"],
            takes_unconditional_update: false,
            qualifies_finalizers: false,
            defaults: |object| edit::fill_all(object, POLICY_DEFAULTS),
            ..has_status
        },
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => Row {
            generation: &["spec"],
            takes_unconditional_update: false,
            qualifies_finalizers: false,
            defaults: |object| edit::fill_all(object, POLICY_DEFAULTS),
            ..CLUSTER
        },
        ("admissionregistration.k8s.io", _) => Row {
            generation: &["spec"],
            takes_unconditional_update: false,
            qualifies_finalizers: false,
            ..CLUSTER
        },
        ("apiregistration.k8s.io", "APIService") => API_SERVICE,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => Row {
            generation: &["spec"],
            defaults: |object| edit::fill_all(object, &[("spec", "matchingPrecedence", I(1000))]),
            ..has_status
        },
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => Row {
            generation: &["spec"],
            defaults: |object| edit::fill_all(object, LEVEL_DEFAULTS),
            ..has_status
        },
        ("certificates.k8s.io", "CertificateSigningRequest") => SIGNING_REQUEST,
        ("certificates.k8s.io", "ClusterTrustBundle") => Row { takes_unconditional_update: false, ..CLUSTER },
        ("certificates.k8s.io", "PodCertificateRequest") => {
            Row { is_namespaced: true, takes_unconditional_update: false, ..has_status }
        }
        ("resource.k8s.io", "ResourceClaim") => Row {
            is_namespaced: true,
            delete_returns_object: true,
            validate_update: |object, old, errors| object.at("spec").immutable(&old.at("spec"), errors),
            ..has_status
        },
        ("resource.k8s.io", "ResourceClaimTemplate") => Row {
            delete_returns_object: true,
            validate_update: |object, old, errors| object.at("spec").immutable(&old.at("spec"), errors),
            ..PLAIN
        },
        ("resource.k8s.io", "ResourceSlice" | "DeviceClass") => {
            Row { delete_returns_object: true, generation: &["spec"], ..CLUSTER }
        }
        ("resource.k8s.io", _) => Row { generation: &["spec"], ..CLUSTER },
        ("storagemigration.k8s.io", "StorageVersionMigration") => {
            Row { takes_unconditional_update: false, ..has_status }
        }
        _ => return None,
    })
}

const WEBHOOKS: Row = Row {
    generation: &["webhooks"],
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    defaults: webhook_defaults,
    validate: validate_webhooks,
    ..CLUSTER
};

const POLICY_DEFAULTS: &[Fill] = &[
    ("spec", "failurePolicy", S("Fail")),
    ("spec.matchConstraints", "matchPolicy", S("Equivalent")),
    ("spec.matchConstraints", "namespaceSelector", O),
    ("spec.matchConstraints", "objectSelector", O),
    ("spec.matchConstraints.resourceRules|excludeResourceRules[]", "scope", S("*")),
];

const LEVEL_DEFAULTS: &[Fill] = &[
    ("spec.limited", "nominalConcurrencyShares", N(30)),
    ("spec.limited", "lendablePercent", N(0)),
    ("spec.exempt", "nominalConcurrencyShares", N(0)),
    ("spec.exempt", "lendablePercent", N(0)),
    ("spec.limited.limitResponse.queuing", "handSize", I(8)),
    ("spec.limited.limitResponse.queuing", "queues", I(64)),
    ("spec.limited.limitResponse.queuing", "queueLengthLimit", I(50)),
];

fn webhook_defaults(object: &mut Value) {
    edit::fill_all(
        object,
        &[
            ("webhooks[]", "failurePolicy", S("Fail")),
            ("webhooks[]", "matchPolicy", S("Equivalent")),
            ("webhooks[]", "namespaceSelector", O),
            ("webhooks[]", "objectSelector", O),
            ("webhooks[]", "timeoutSeconds", N(10)),
            ("webhooks[].rules[]", "scope", S("*")),
            ("webhooks[].clientConfig.service", "port", N(443)),
        ],
    );
}

fn validate_webhooks(object: &At<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for webhook in object.at("webhooks").items() {
        let name = webhook.at("name");
        if name.required(errors) {
            name.format(names::dns_subdomain, errors);
            if name.text().split('.').count() < 3 {
                errors
                    .push(name.invalid("should be a domain with at least three segments separated by dots"));
            }
        }
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        webhook.at("failurePolicy").one_of(&["Fail", "Ignore"], errors);
        webhook.at("matchPolicy").one_of(&["Equivalent", "Exact"], errors);
        let effects = webhook.at("sideEffects");
        effects.required_one_of(&["None", "NoneOnDryRun"], errors);
        webhook.at("timeoutSeconds").between(1, 30, errors);
        let versions = webhook.at("admissionReviewVersions");
        if versions.is_empty() {
            errors.push(versions.missing("must specify one of v1, v1beta1"));
        }
        let config = webhook.at("clientConfig");
        if config.at("url").is_set() == config.at("service").is_set() {
            errors.push(config.missing("exactly one of url or service is required"));
        }
    }
}

const API_SERVICE: Row = Row {
    names: NameRule::PathSegment,
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    status: Some(|| None),
    defaults: |object| edit::fill_all(object, &[("spec.service", "port", N(443))]),
    zeros: &[("", "spec", O), ("", "status", O)],
    validate: |object, errors| {
        let spec = object.at("spec");
        let wanted = format!("{}.{}", spec.at("version").text(), spec.at("group").text());
        let metadata = object.at("metadata");
        let name = metadata.at("name");
        if name.text() != wanted {
            errors.push(name.invalid(format!("must be `spec.version+\".\"+spec.group`: {wanted:?}")));
        }
        spec.at("version").required_format(names::dns_1035_label, errors);
    },
    ..CLUSTER
};

const SIGNING_REQUEST: Row =
    Row {
        names: NameRule::PathSegment,
        status: Some(|| None),
        status_meta: StatusMeta::Old,
        defaults: |object| {
            edit::each(object, "spec", &mut |spec| {
                let has_usages =
                    spec.get("usages").and_then(Value::as_array).is_some_and(|usages| !usages.is_empty());
                if !has_usages {
                    spec.insert("usages".to_owned(), json!(["digital signature", "key encipherment"]));
                }
            });
        },
        zeros: &[("", "status", O)],
        prepare_update: |object, old| edit::take_from(object, old, "spec"),
        prepare_subresource: |_, object, old| {
            // Approval writes conditions and nothing else.
            let conditions = object.pointer("/status/conditions").cloned();
            let mut status = old.get("status").cloned().unwrap_or_else(|| json!({}));
            if let (Some(conditions), Some(members)) = (conditions, status.as_object_mut()) {
                members.insert("conditions".to_owned(), conditions);
            }
            super::reset_metadata(object, old);
            if let Some(members) = object.as_object_mut() {
                members.insert("status".to_owned(), status);
            }
        },
        validate: |object, errors| {
            let spec = object.at("spec");
            spec.at("request").required(errors);
            let signer = spec.at("signerName");
            if signer.required(errors) && !signer.text().contains('/') {
                errors.push(signer.invalid(
                    "must be a fully qualified domain and path of the form 'example.com/signer-name'",
                ));
            }
        },
        ..CLUSTER
    };
