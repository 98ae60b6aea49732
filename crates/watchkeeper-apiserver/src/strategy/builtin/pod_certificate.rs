//! Certificate requests of pods.

use x509_parser::{
    prelude::{FromDer, X509Certificate},
    x509::SubjectPublicKeyInfo,
};

use super::{
    certificate::{bytes, der_request_problem, signer_name},
    condition,
    row::{PLAIN, StatusMetadata, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr},
    },
    metadata, names,
    table::{self, Rule, RuleTable},
};

pub(super) const POD_REQUEST: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    zeros: &[("", "status", EmptyObject)],
    defaults: |object| edit::fill_all(object, &[("spec", "maxExpirationSeconds", IntPtr(86_400))]),
    table: &[("spec", &[Rule::Immutable])],
    validate_create: |object, errors| {
        let spec = object.at("spec");
        table::check(POD_SPEC, &spec, errors);
        pod_key(&spec, errors);
    },
    validate_status: pod_status,
    ..PLAIN
};

const POD_SPEC: RuleTable = &[
    ("signerName", &[Rule::Check(signer_name)]),
    ("podName", &[Rule::EvenEmpty(names::dns_subdomain)]),
    ("podUID", &[Rule::Check(uid)]),
    ("serviceAccountName", &[Rule::EvenEmpty(names::dns_subdomain)]),
    ("serviceAccountUID", &[Rule::Check(uid)]),
    ("nodeName", &[Rule::EvenEmpty(names::dns_subdomain)]),
    ("nodeUID", &[Rule::Check(uid)]),
    ("maxExpirationSeconds", &[Rule::Present("must be set")]),
    ("", &[Rule::Check(expiration)]),
];

fn uid(uid: &Cursor<'_>, errors: &mut Errors) {
    if uid.is_empty() {
        errors.push(uid.invalid("must not be empty"));
    }
    if uid.text().len() > 128 {
        errors.push(metadata::too_long(uid, 128));
    }
}

fn expiration(spec: &Cursor<'_>, errors: &mut Errors) {
    const LEAST: i64 = 3600;
    let domain = spec.at("signerName").text().split('/').next().unwrap_or_default();
    let is_of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    let most = if is_of_kubernetes { 86_400 } else { 7_862_400 };
    let seconds = spec.at("maxExpirationSeconds");
    if seconds.int().is_some_and(|given| !(LEAST..=most).contains(&given)) {
        errors.push(seconds.invalid(format!("must be in the range [{LEAST}, {most}]")));
    }
}

/// Checks that exactly one of the two forms of the key is given.
fn pod_key(spec: &Cursor<'_>, errors: &mut Errors) {
    let (stub, key, proof) =
        (spec.at("stubPKCS10Request"), spec.at("pkixPublicKey"), spec.at("proofOfPossession"));
    match (stub.is_empty(), key.is_empty(), proof.is_empty()) {
        (false, true, true) => {
            if let Some(problem) = der_request_problem(&bytes(&stub)) {
                let is_signature = problem.contains("signature");
                let detail = if is_signature { "invalid signature" } else { "must be a valid PKCS#10 CSR" };
                errors.push(stub.invalid(detail));
            }
        }
        (true, false, false) => {
            let der = bytes(&key);
            if SubjectPublicKeyInfo::from_der(&der).is_err() {
                errors.push(key.invalid("must be a valid PKIX-serialized public key"));
            }
        }
        _ => {
            errors.push(spec.invalid(
                "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
            ));
        }
    }
}

const OUTCOMES: [&str; 3] = ["Issued", "Denied", "Failed"];

fn pod_status(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (status, old_status) = (object.at("status"), old.at("status"));
    let conditions = status.at("conditions");
    let start = errors.len();
    let mut outcomes = 0;
    for condition in conditions.items() {
        let (kind, state) = (condition.at("type"), condition.at("status"));
        if !OUTCOMES.contains(&kind.text()) {
            errors.push(kind.unsupported(&OUTCOMES));
            continue;
        }
        outcomes += 1;
        if outcomes > 1 {
            errors.push(kind.invalid(
                "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"",
            ));
        }
        if state.text() != "True" {
            errors.push(state.unsupported(&["True"]));
        }
    }
    condition::conditions(&conditions, errors);
    if errors.len() > start {
        return;
    }
    let is = |status: &Cursor<'_>, kinds: &[&str]| {
        kinds.iter().any(|kind| condition::is_true(&status.at("conditions"), kind))
    };
    let is_changed = status.value != old_status.value && !(status.is_empty() && old_status.is_empty());
    if is(&old_status, &OUTCOMES) {
        if is_changed {
            errors.push(status.invalid("immutable after PodCertificateRequest is issued, denied, or failed"));
        }
        return;
    }
    let fields = ["certificateChain", "notBefore", "notAfter", "beginRefreshAt"];
    if is(&status, &["Denied", "Failed"]) {
        if fields.iter().any(|field| !status.at(field).is_empty()) {
            errors.push(status.invalid(
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
            ));
        }
    } else if is(&status, &["Issued"]) {
        issued(&status, errors);
    } else if is_changed {
        errors
            .push(status.invalid(
                "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
            ));
    }
}

fn issued(status: &Cursor<'_>, errors: &mut Errors) {
    let chain = status.at("certificateChain");
    let blocks = pem::parse_many(chain.text()).unwrap_or_default();
    let problem = match blocks.first() {
        None => Some("issued certificate chain must contain at least one certificate"),
        Some(_) if blocks.iter().any(|block| block.tag() != "CERTIFICATE") => {
            Some("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
        }
        Some(leaf) if X509Certificate::from_der(leaf.contents()).is_err() => {
            Some("leaf certificate does not parse as valid X.509")
        }
        Some(_) => None,
    };
    if let Some(problem) = problem {
        errors.push(chain.invalid(problem));
        return;
    }
    for (member, detail) in [
        ("notBefore", "must be present and consistent with the issued certificate"),
        ("notAfter", "must be present and consistent with the issued certificate"),
        ("beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
    ] {
        if !status.at(member).is_set() {
            errors.push(status.at(member).missing(detail));
        }
    }
}
