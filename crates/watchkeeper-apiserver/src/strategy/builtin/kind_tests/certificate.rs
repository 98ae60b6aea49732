//! Certificate signing requests and trust bundles.

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use super::{NOW, created, creates, updated, updates};
use crate::strategy::Part;

const GROUP: &str = "certificates.k8s.io";

fn request() -> Value {
    let key = KeyPair::generate().unwrap();
    let pem = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    json!({"spec": {"request": STANDARD.encode(pem), "signerName": "example.com/a", "usages": ["client auth"]}})
}

fn certificate(is_authority: bool) -> String {
    let mut params = CertificateParams::default();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

#[test]
fn certificate_signing_requests_are_validated() {
    creates(
        GROUP,
        "CertificateSigningRequest",
        &request(),
        &[
            ("/spec/request", json!("YQ=="), &["spec.request Invalid"]),
            ("/spec/request", json!(""), &["spec.request Invalid"]),
            ("/spec/usages", json!([]), &["spec.usages Required"]),
            ("/spec/usages", json!(["odd"]), &["spec.usages[0] NotSupported"]),
            ("/spec/usages", json!(["any", "any"]), &["spec.usages[1] Duplicate"]),
            ("/spec/signerName", json!(""), &["spec.signerName Required"]),
            ("/spec/signerName", json!("a"), &["spec.signerName Invalid"]),
            ("/spec/signerName", json!("example/a"), &["spec.signerName Invalid"]),
            ("/spec/signerName", json!("kubernetes.io/legacy-unknown"), &["spec.signerName Invalid"]),
            ("/spec/expirationSeconds", json!(599), &["spec.expirationSeconds Invalid"]),
        ],
    );
}

#[test]
fn a_signing_request_records_its_requester() {
    let mut sent = request();
    sent["spec"]["username"] = json!("root");
    sent["spec"]["extra"] = json!({"a": ["b"]});
    let spec = created(GROUP, "CertificateSigningRequest", &sent)["spec"].clone();
    assert_eq!(spec["username"], json!("jane"));
    assert_eq!(spec["groups"], json!(["devs"]));
    assert_eq!(spec["uid"], json!("7"));
    assert!(spec.get("extra").is_none());
}

#[test]
fn approval_writes_conditions_and_metadata_and_status_writes_the_certificate() {
    let kind = "CertificateSigningRequest";
    let condition = json!({"type": "Approved", "status": "True"});
    let chain = STANDARD.encode(certificate(false));
    updates(
        GROUP,
        kind,
        Part::Subresource("approval"),
        &request(),
        &[
            ("/status/conditions", json!([condition]), &[]),
            (
                "/status/conditions",
                json!([{"type": "Approved", "status": "False"}]),
                &["status.conditions[0].status NotSupported"],
            ),
            (
                "/status/conditions",
                json!([condition, {"type": "Denied", "status": "True"}]),
                &["status.conditions Invalid"],
            ),
            ("/status/certificate", json!(chain), &[]),
        ],
    );
    updates(
        GROUP,
        kind,
        Part::Subresource("status"),
        &request(),
        &[
            ("/status/conditions", json!([condition]), &["status.conditions Forbidden"]),
            (
                "/status/conditions",
                json!([{"type": "Odd", "status": "Odd"}]),
                &["status.conditions[0].status NotSupported"],
            ),
            ("/status/certificate", json!(chain), &[]),
            ("/status/certificate", json!("YQ=="), &["status.certificate Invalid"]),
        ],
    );
    let old = created(GROUP, kind, &request());
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    new["status"]["conditions"] = json!([condition]);
    new["status"]["certificate"] = json!(chain);
    let approved = updated(GROUP, kind, Part::Subresource("approval"), &old, &new);
    assert_eq!(approved["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(approved["status"]["conditions"][0]["lastTransitionTime"], json!(NOW));
    assert!(approved["status"].get("certificate").is_none());
}

#[test]
fn trust_bundles_of_signers_are_named_after_them() {
    let bundle = |name: &str, signer: &str| json!({"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": certificate(true)}});
    let kind = "ClusterTrustBundle";
    creates(
        GROUP,
        kind,
        &bundle("example.com:a:b", "example.com/a"),
        &[
            ("/metadata/name", json!("b"), &["metadata.name Invalid"]),
            ("/metadata/name", json!("example.com:a:B_"), &["metadata.name Invalid"]),
            ("/spec/trustBundle", json!("x"), &["spec.trustBundle Invalid"]),
            ("/spec/trustBundle", json!(certificate(false)), &["spec.trustBundle Invalid"]),
        ],
    );
    creates(GROUP, kind, &bundle("b", ""), &[("/metadata/name", json!("a:b"), &["metadata.name Invalid"])]);
    updates(
        GROUP,
        kind,
        Part::Main,
        &bundle("example.com:a:b", "example.com/a"),
        &[(
            "/spec/signerName",
            json!("example.com/c"),
            &["metadata.name Invalid", "spec.signerName Invalid"],
        )],
    );
}

#[test]
fn pod_certificate_requests_are_validated() {
    let key = KeyPair::generate().unwrap();
    let stub = CertificateParams::default().serialize_request(&key).unwrap();
    let request = json!({"spec": {
        "signerName": "example.com/a", "podName": "p", "podUID": "1", "serviceAccountName": "s", "serviceAccountUID": "2",
        "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": STANDARD.encode(stub.der()),
    }});
    let kind = "PodCertificateRequest";
    creates(
        GROUP,
        kind,
        &request,
        &[
            ("/spec/podUID", json!(""), &["spec.podUID Invalid"]),
            ("/spec/nodeName", json!(""), &["spec.nodeName Invalid"]),
            ("/spec/maxExpirationSeconds", json!(10), &["spec.maxExpirationSeconds Invalid"]),
            ("/spec/stubPKCS10Request", json!("YQ=="), &["spec.stubPKCS10Request Invalid"]),
            ("/spec/stubPKCS10Request", Value::Null, &["spec Invalid"]),
        ],
    );
    let denied = json!([{"type": "Denied", "status": "True", "reason": "R", "lastTransitionTime": NOW}]);
    updates(
        GROUP,
        kind,
        Part::Subresource("status"),
        &request,
        &[
            ("/status", json!({"conditions": denied}), &[]),
            ("/status", json!({"conditions": denied, "certificateChain": "a"}), &["status Invalid"]),
            ("/status", json!({"certificateChain": "a"}), &["status Invalid"]),
        ],
    );
}
