//! Signers of certificates: who may approve and sign requests, and attest bundles of trust anchors, in their name.

use serde_json::Value;

use super::{
    attributes::{Attributes, ResourceAttributes},
    content::ContentWrite,
    rbac::RbacPolicy,
    user::User,
};
use crate::status::{ApiError, Details};

const GROUP: &str = "certificates.k8s.io";

/// Checks the permission on the signer for a write of a certificate request or a trust bundle; other kinds pass.
///
/// # Errors
/// 403 naming the signer.
pub(super) fn check(policy: &RbacPolicy, user: &User, write: &ContentWrite<'_>) -> Result<(), ApiError> {
    let signer = |object: &Value| object["spec"]["signerName"].as_str().unwrap_or_default().to_owned();
    let (resource, verb, signer, what) = match (write.kind_in(GROUP), write.subresource, write.old) {
        // The stored object decides: a request cannot change its signer.
        (Some("CertificateSigningRequest"), "approval", Some(old)) => {
            ("certificatesigningrequests", "approve", signer(old), "approve requests")
        }
        (Some("CertificateSigningRequest"), "status", Some(old)) if is_signing(write.object, old) => {
            ("certificatesigningrequests", "sign", signer(old), "sign requests")
        }
        (Some("ClusterTrustBundle"), "", _) if !write.is_for_garbage_collection() => {
            ("clustertrustbundles", "attest", signer(write.object), "attest")
        }
        _ => return Ok(()),
    };
    if verb == "attest" && signer.is_empty() {
        return Ok(());
    }
    let domain = signer.split('/').next().unwrap_or_default();
    let may = |name: String| {
        let attributes = ResourceAttributes {
            verb: verb.into(),
            group: GROUP.into(),
            resource: "signers".into(),
            name,
            ..ResourceAttributes::default()
        };
        policy.decide(user, &Attributes::Resource(attributes)).is_allowed
    };
    if may(signer.clone()) || may(format!("{domain}/*")) {
        return Ok(());
    }
    let name = write.metadata("name");
    let message = format!(
        "{resource}.{GROUP} {name:?} is forbidden: user not permitted to {what} with signerName {signer:?}"
    );
    Err(ApiError::new(403, "Forbidden", message).with_details(Details {
        name: Some(name.to_owned()),
        group: Some(GROUP.to_owned()),
        kind: Some(resource.to_owned()),
        ..Details::default()
    }))
}

fn is_signing(new: &Value, old: &Value) -> bool {
    ["certificate", "conditions"].iter().any(|member| new["status"][member] != old["status"][member])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::rbac::RbacObjects;
    use serde_json::json;

    fn policy(verb: &str, signers: &[&str]) -> RbacPolicy {
        RbacPolicy::new(RbacObjects {
            cluster_roles: &[json!({"metadata": {"name": "r"}, "rules": [
                {"verbs": [verb], "apiGroups": [GROUP], "resources": ["signers"], "resourceNames": signers}]})],
            cluster_role_bindings: &[
                json!({"metadata": {"name": "r"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": "ann"}]}),
            ],
            ..RbacObjects::default()
        })
    }

    #[test]
    fn approving_signing_and_attesting_need_the_verb_on_the_signer() {
        let ann = User { name: "ann".into(), ..User::default() };
        let request = |status: Value| {
            json!({"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1",
                   "metadata": {"name": "r"}, "spec": {"signerName": "acme.io/web"}, "status": status})
        };
        let bundle = json!({"kind": "ClusterTrustBundle", "apiVersion": "certificates.k8s.io/v1",
                            "metadata": {"name": "b"}, "spec": {"signerName": "acme.io/web"}});
        let (old, approved, signed) = (
            request(json!({})),
            request(json!({"conditions": [{"type": "Approved"}]})),
            request(json!({"certificate": "eA=="})),
        );
        let cases: [(&str, &Value, Option<&Value>, &str); 3] = [
            ("approval", &approved, Some(&old), "approve"),
            ("status", &signed, Some(&old), "sign"),
            ("", &bundle, None, "attest"),
        ];
        for (subresource, object, old, verb) in cases {
            let write = ContentWrite { verb: "update", subresource, object, old };
            for (signers, expected) in [
                (["acme.io/web"], true),
                (["acme.io/*"], true),
                (["acme.io/db"], false),
                (["other.io/*"], false),
            ] {
                assert_eq!(
                    check(&policy(verb, &signers), &ann, &write).is_ok(),
                    expected,
                    "{verb} {signers:?}"
                );
            }
            let refused = check(&policy("get", &["acme.io/web"]), &ann, &write).expect_err("another verb");
            assert_eq!((refused.code, refused.reason), (403, "Forbidden"), "{verb}");
        }
        let unchanged = ContentWrite { verb: "update", subresource: "status", object: &old, old: Some(&old) };
        assert!(check(&policy("get", &[]), &ann, &unchanged).is_ok(), "nothing is signed");
    }
}
