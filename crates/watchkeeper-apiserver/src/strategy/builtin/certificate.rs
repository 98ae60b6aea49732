//! Certificate signing requests and trust bundles.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use x509_parser::{
    certification_request::X509CertificationRequest,
    error::X509Error,
    prelude::{FromDer, X509Certificate},
};

use super::row::{CLUSTER, StatusMetadata, StrategyRow};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        Part, WriteContext,
        cursor::{Cursor, Errors},
        edit::{self, DefaultValue::EmptyObject},
        metadata,
        names::{self, NameRule},
        table::{self, Rule, RuleTable},
    },
};

pub(super) const SIGNING_REQUEST: StrategyRow = StrategyRow {
    names: NameRule::PathSegment,
    status: Some(|| None),
    status_meta: StatusMetadata::Mutable,
    zeros: &[("", "status", EmptyObject)],
    set_request_fields: record_requester,
    prepare_update: |object, old| edit::take_from(object, old, "spec"),
    prepare_status: |object, old| {
        keep_conditions(object, old, "Approved");
        keep_conditions(object, old, "Denied");
    },
    prepare_subresource: |_, object, old| {
        // Approval writes conditions and metadata.
        let conditions = object.pointer("/status/conditions").cloned();
        edit::take_from(object, old, "spec");
        edit::take_from(object, old, "status");
        if let Some(status) = edit::object(object, "status") {
            match conditions {
                Some(conditions) => status.insert("conditions".to_owned(), conditions),
                None => status.remove("conditions"),
            };
        }
    },
    validate_create: |object, errors| table::check(REQUEST, object, errors),
    validate_status: |object, old, errors| update_request(object, old, false, errors),
    validate_subresource: |_, object, old, errors| update_request(object, old, true, errors),
    ..CLUSTER
};

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const REQUEST: RuleTable = &[
    (
        "spec.request",
        &[Rule::Check(|request, errors| {
            if let Some(problem) = request_problem(&bytes(request)) {
                errors.push(request.invalid(problem));
            }
        })],
    ),
    ("spec.usages", &[Rule::Required]),
    ("spec.usages[]", &[Rule::Enum(&USAGES)]),
    ("spec.usages", &[Rule::UniqueItems]),
    (
        "spec.signerName",
        &[Rule::Check(|signer, errors| {
            if signer.text() == "kubernetes.io/legacy-unknown" {
                errors.push(signer.invalid("the legacy signerName is not allowed via this API version"));
            } else {
                signer_name(signer, errors);
            }
        })],
    ),
    (
        "spec.expirationSeconds",
        &[Rule::Check(|seconds, errors| {
            if seconds.int().is_some_and(|seconds| seconds < 600) {
                errors.push(seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
            }
        })],
    ),
];

/// Records the user of the request, and the times of changed conditions.
fn record_requester(part: Part<'_>, object: &mut Value, old: Option<&Value>, context: &WriteContext<'_>) {
    if part == Part::Main {
        if old.is_none()
            && let Some(spec) = edit::object(object, "spec")
        {
            let mut user = context.user.to_value();
            for member in ["username", "uid", "groups", "extra"] {
                match user.get_mut(member).map(Value::take) {
                    Some(value) => spec.insert(member.to_owned(), value),
                    None => spec.remove(member),
                };
            }
        }
        return;
    }
    let before = old.and_then(|old| old.pointer("/status/conditions")).and_then(Value::as_array);
    edit::each(object, "status.conditions[]", &mut |condition| {
        let is_unset =
            |condition: &edit::Members, member: &str| condition.get(member).is_none_or(Value::is_null);
        if is_unset(condition, "lastUpdateTime") {
            condition.insert("lastUpdateTime".to_owned(), context.now.into());
        }
        if is_unset(condition, "lastTransitionTime") {
            let known = before.into_iter().flatten().find(|old| {
                ["type", "status"].iter().all(|member| old.get(*member) == condition.get(*member))
            });
            let time = known.and_then(|old| old.get("lastTransitionTime")).filter(|time| !time.is_null());
            let time = time.cloned().unwrap_or_else(|| context.now.into());
            condition.insert("lastTransitionTime".to_owned(), time);
        }
    });
}

/// Restores the conditions of a type from `old`, unless their number changes.
fn keep_conditions(object: &mut Value, old: &Value, kind: &str) {
    let is_of_kind = |condition: &&Value| condition.get("type").is_some_and(|given| given == kind);
    let known: Vec<Value> = old
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(is_of_kind)
        .cloned()
        .collect();
    let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") else { return };
    let given = conditions.iter_mut().filter(|condition| is_of_kind(&&**condition));
    let given: Vec<&mut Value> = given.collect();
    if given.len() == known.len() {
        for (condition, known) in given.into_iter().zip(known) {
            *condition = known;
        }
    }
}

fn update_request(object: &Cursor<'_>, old: &Cursor<'_>, is_approval: bool, errors: &mut Errors) {
    let (status, old_status) = (object.at("status"), old.at("status"));
    let (conditions, old_conditions) = (status.at("conditions"), old_status.at("conditions"));
    request_conditions(&conditions, &old_conditions, errors);
    let (certificate, old_certificate) = (status.at("certificate"), old_status.at("certificate"));
    let is_changed = certificate.text() != old_certificate.text();
    if is_changed
        && certificate_problem(&bytes(&old_certificate)).is_none()
        && let Some(problem) = certificate_problem(&bytes(&certificate))
    {
        let mut error = certificate.invalid(problem);
        error.bad_value = Some("<certificate data>".into());
        errors.push(error);
    }
    let of = |list: &Cursor<'_>, kind: &str| {
        let items = list.items().filter(|condition| condition.at("type").text() == kind);
        items.map(|condition| condition.value.clone()).collect::<Vec<Value>>()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if of(&conditions, kind).len() < of(&old_conditions, kind).len() {
            errors.push(conditions.forbidden(format!("updates may not remove a condition of type {kind:?}")));
        }
    }
    for kind in ["Approved", "Denied"].into_iter().filter(|_| !is_approval) {
        let (now, before) = (of(&conditions, kind), of(&old_conditions, kind));
        if now.len() > before.len() {
            errors.push(conditions.forbidden(format!("updates may not add a condition of type {kind:?}")));
        } else if now.len() == before.len() && now != before {
            errors.push(conditions.forbidden(format!("updates may not modify a condition of type {kind:?}")));
        }
    }
    if is_changed && is_approval {
        errors.push(certificate.forbidden("updates may not set certificate content"));
    } else if is_changed && !old_certificate.is_empty() {
        errors.push(certificate.forbidden("updates may not modify existing certificate content"));
    }
}

fn request_conditions(conditions: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let has = |kind: &str| old.items().any(|condition| condition.at("type").text() == kind);
    let was_both = has("Approved") && has("Denied");
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.at("type"), condition.at("status"));
        kind.required(errors);
        if matches!(kind.text(), "Approved" | "Denied" | "Failed") {
            status.required_one_of(&["True"], errors);
        } else {
            status.required_one_of(&["False", "True", "Unknown"], errors);
        }
        let opposite = match kind.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !was_both && seen.contains(opposite) {
            let mut error = conditions.invalid("Approved and Denied conditions are mutually exclusive");
            error.bad_value = Some(kind.text().into());
            errors.push(error);
        }
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
    }
}

/// Returns the bytes of a base64 text.
pub(super) fn bytes(at: &Cursor<'_>) -> Vec<u8> {
    STANDARD.decode(at.text()).unwrap_or_default()
}

/// Returns the problem of a certificate signing request in PEM form, if any.
fn request_problem(pem_bytes: &[u8]) -> Option<String> {
    let blocks = pem::parse_many(pem_bytes).unwrap_or_default();
    match blocks.first().filter(|block| block.tag() == "CERTIFICATE REQUEST") {
        None => Some("PEM block type must be CERTIFICATE REQUEST".to_owned()),
        Some(block) => der_request_problem(block.contents()),
    }
}

pub(super) fn der_request_problem(der: &[u8]) -> Option<String> {
    match X509CertificationRequest::from_der(der) {
        Err(error) => Some(format!("x509: malformed certificate request: {error}")),
        Ok((rest, _)) if !rest.is_empty() => Some("x509: trailing data".to_owned()),
        Ok((_, request)) => match request.verify_signature() {
            // A request whose algorithm cannot be checked here is accepted.
            Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => None,
            Err(_) => Some("x509: signature check failed".to_owned()),
        },
    }
}

/// Returns the problem of issued certificates in PEM form, if any. An empty value is valid.
fn certificate_problem(pem_bytes: &[u8]) -> Option<String> {
    if pem_bytes.is_empty() {
        return None;
    }
    let blocks = pem::parse_many(pem_bytes).unwrap_or_default();
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| {
        if block.tag() != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.tag()));
        }
        if block.headers().iter().count() > 0 {
            return Some("no PEM block headers are permitted".to_owned());
        }
        X509Certificate::from_der(block.contents()).err().map(|error| format!("x509: {error}"))
    })
}

/// Checks the name of a signer: `example.com/path`.
pub(super) fn signer_name(signer: &Cursor<'_>, errors: &mut Errors) {
    const MOST: usize = 253 + 253 + 63 + 2;
    if !signer.required(errors) {
        return;
    }
    let Some((domain, path)) = signer.text().split_once('/').filter(|(_, path)| !path.contains('/')) else {
        errors.push(
            signer.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"),
        );
        return;
    };
    let reported = |value: &str, detail: String| {
        FieldError::new(FieldErrorKind::Invalid, signer.path(), Some(value.into()), detail)
    };
    if domain.len() > 253 {
        errors.push(metadata::too_long(signer, 253));
    }
    let wrong = |parts: &str, format: names::FormatCheck| {
        parts.split('.').map(|part| (part.to_owned(), format(part))).find(|(_, wrong)| !wrong.is_empty())
    };
    for (part, details) in
        wrong(domain, names::dns_label).into_iter().chain(wrong(path, names::dns_subdomain))
    {
        errors.extend(
            details
                .into_iter()
                .map(|detail| reported(domain, format!("validating label {part:?}: {detail}"))),
        );
    }
    if !domain.contains('.') {
        errors.push(reported(
            domain,
            "should be a domain with at least two segments separated by dots".to_owned(),
        ));
    }
    if signer.text().len() > MOST {
        errors.push(metadata::too_long(signer, MOST));
    }
}

pub(super) const TRUST_BUNDLE: StrategyRow = StrategyRow {
    names: NameRule::PathSegment,
    takes_unconditional_update: false,
    validate: |object, errors| {
        bundle_name(object, errors);
        let spec = object.at("spec");
        let signer = spec.at("signerName");
        if !signer.is_empty() {
            signer_name(&signer, errors);
        }
    },
    validate_create: |object, errors| trust_bundle(&object.at("spec").at("trustBundle"), errors),
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        if spec.at("trustBundle").text() != old.at("trustBundle").text() {
            trust_bundle(&spec.at("trustBundle"), errors);
        }
        spec.at("signerName").immutable(&old.at("signerName"), errors);
    },
    ..CLUSTER
};

/// Checks the name of a bundle with a signer: the signer's name, with colons for slashes, is the prefix.
fn bundle_name(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    let (name, signer) = (metadata.at("name"), spec.at("signerName").text());
    let prefix = if signer.is_empty() { String::new() } else { format!("{}:", signer.replace('/', ":")) };
    let wrong = match name.text().strip_prefix(&prefix) {
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
        Some(rest) if prefix.is_empty() && rest.contains(':') => {
            vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()]
        }
        Some(rest) => names::dns_subdomain(rest),
    };
    if !name.is_empty() {
        errors.extend(wrong.into_iter().map(|detail| name.invalid(detail)));
    }
}

const BUNDLE_SIZE: usize = 1024 * 1024;

fn trust_bundle(bundle: &Cursor<'_>, errors: &mut Errors) {
    if bundle.text().len() > BUNDLE_SIZE {
        errors.push(metadata::too_long(bundle, BUNDLE_SIZE));
        return;
    }
    let mut report = |detail: String| {
        let mut error = bundle.invalid(detail);
        error.bad_value = Some("<value omitted>".into());
        errors.push(error);
    };
    let blocks = pem::parse_many(bundle.text()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut has_problem = false;
    let mut duplicates = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let problem = if block.tag() == "CERTIFICATE" {
            anchor_problem(block)
        } else {
            Some(format!("has bad block type: {}", block.tag()))
        };
        match problem {
            Some(problem) => {
                has_problem = true;
                report(format!("entry {index} {problem}"));
            }
            None if !seen.insert(block.contents().to_vec()) => duplicates.push(index),
            None => {}
        }
    }
    if has_problem {
        return;
    }
    if seen.is_empty() {
        report("at least one trust anchor must be provided".to_owned());
    }
    if !duplicates.is_empty() {
        report(format!("duplicate trust anchor (indices {duplicates:?})"));
    }
}

fn anchor_problem(block: &pem::Pem) -> Option<String> {
    if block.headers().iter().count() > 0 {
        return Some("has PEM block headers".to_owned());
    }
    match X509Certificate::from_der(block.contents()) {
        Err(_) => Some("does not parse as X.509".to_owned()),
        Ok((_, certificate)) if !certificate.is_ca() => Some("does not have the CA bit set".to_owned()),
        Ok(_) => None,
    }
}
