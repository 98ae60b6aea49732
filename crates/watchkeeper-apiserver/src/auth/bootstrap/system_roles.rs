//! Roles of every user and of components that connect from outside.
//!
//! The roles of controllers, of the scheduler and of kubelets are omitted, because none of these connects to this server
//! with its own identity.

use serde_json::{Value, json};

use super::{API_VERSION, GROUP, READ, cluster_role, metadata, named_rule, paths, rule};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";

/// Signers that requests can be approved for, each with the role for that.
const APPROVERS: [(&str, &str); 4] = [
    ("legacy-unknown-approver", "kubernetes.io/legacy-unknown"),
    ("kubelet-serving-approver", "kubernetes.io/kubelet-serving"),
    ("kube-apiserver-client-approver", "kubernetes.io/kube-apiserver-client"),
    ("kube-apiserver-client-kubelet-approver", "kubernetes.io/kube-apiserver-client-kubelet"),
];

/// Returns the roles and their bindings.
pub(super) fn objects() -> Vec<Value> {
    let mut objects = cluster_roles();
    objects.extend(APPROVERS.map(|(name, signer)| {
        let rules = [named_rule(&["approve"], CERTIFICATES, "signers", &[signer])];
        cluster_role(&format!("system:certificates.k8s.io:{name}"), &rules)
    }));
    objects.push(authentication_reader());
    objects.extend([
        binding("cluster-admin", &["system:masters"]),
        binding("system:monitoring", &["system:monitoring"]),
        binding("system:discovery", &["system:authenticated"]),
        binding("system:basic-user", &["system:authenticated"]),
        binding("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
        binding("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
        binding("system:cluster-trust-bundle-discovery", &["system:serviceaccounts"]),
    ]);
    objects
}

fn cluster_roles() -> Vec<Value> {
    let everything = [rule(&["*"], &["*"], &["*"]), json!({"nonResourceURLs": ["*"], "verbs": ["*"]})];
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    let monitoring =
        ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"];
    let issuer = [
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
    ];
    vec![
        cluster_role("cluster-admin", &everything),
        cluster_role("system:discovery", &[paths(&discovery)]),
        cluster_role("system:monitoring", &[paths(&monitoring), rule(&["get"], &[""], &["nodes/metrics"])]),
        cluster_role(
            "system:basic-user",
            &[
                rule(&["create"], &[AUTHORIZATION], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                rule(&["create"], &[AUTHENTICATION], &["selfsubjectreviews"]),
            ],
        ),
        cluster_role(
            "system:public-info-viewer",
            &[paths(&["/healthz", "/livez", "/readyz", "/version", "/version/"])],
        ),
        cluster_role(
            "system:auth-delegator",
            &[
                rule(&["create"], &[AUTHENTICATION], &["tokenreviews"]),
                rule(&["create"], &[AUTHORIZATION], &["subjectaccessreviews"]),
            ],
        ),
        cluster_role("system:kube-aggregator", &[rule(READ, &[""], &["endpoints", "services"])]),
        cluster_role(
            "system:persistent-volume-provisioner",
            &[
                rule(&["create", "delete", "get", "list", "watch"], &[""], &["persistentvolumes"]),
                rule(&["get", "list", "update", "watch"], &[""], &["persistentvolumeclaims"]),
                rule(READ, &["storage.k8s.io"], &["storageclasses"]),
                rule(&["watch"], &[""], &["events"]),
                rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
            ],
        ),
        cluster_role("system:service-account-issuer-discovery", &[paths(&issuer)]),
        cluster_role(
            "system:cluster-trust-bundle-discovery",
            &[rule(READ, &[CERTIFICATES], &["clustertrustbundles"])],
        ),
    ]
}

/// Returns the role with which other API servers read how this one authenticates.
fn authentication_reader() -> Value {
    let mut metadata = metadata("extension-apiserver-authentication-reader");
    metadata["namespace"] = "kube-system".into();
    let rules = [named_rule(READ, "", "configmaps", &["extension-apiserver-authentication"])];
    json!({"kind": "Role", "apiVersion": API_VERSION, "metadata": metadata, "rules": rules})
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> =
        groups.iter().map(|group| json!({"kind": "Group", "apiGroup": GROUP, "name": group})).collect();
    json!({
        "kind": "ClusterRoleBinding",
        "apiVersion": API_VERSION,
        "metadata": metadata(role),
        "roleRef": {"kind": "ClusterRole", "apiGroup": GROUP, "name": role},
        "subjects": subjects,
    })
}
