//! resourceVersions and uids in objects to be created.

use serde_json::{Value, json};

use crate::support::{Cluster, apply};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn map(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[tokio::test(start_paused = true)]
async fn apply_creates_an_object_whose_body_has_a_version() {
    let cluster = Cluster::new();
    let body = map(&json!({"name": "a", "resourceVersion": "5"}));
    let (code, created) = apply(&cluster, &format!("{MAPS}/a"), &body).await;
    assert_eq!(code, 201, "{created}");
    assert_ne!(created["metadata"]["resourceVersion"], "5");
    let (code, reply) = apply(&cluster, &format!("{MAPS}/a"), &body).await;
    assert_eq!(
        (code, &reply["reason"]),
        (409, &json!("Conflict")),
        "the new version is the precondition of the next write"
    );

    let bad = map(&json!({"name": "b", "resourceVersion": "bad"}));
    let (code, reply) = apply(&cluster, &format!("{MAPS}/b"), &bad).await;
    assert_eq!(code, 500, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_create_with_a_version_returns_that_version() {
    let cluster = Cluster::new();
    let body = map(&json!({"name": "a", "resourceVersion": "5"}));
    let (code, shown) = cluster.call("POST", &format!("{MAPS}?dryRun=All"), body.clone()).await;
    assert_eq!((code, &shown["metadata"]["resourceVersion"]), (201, &json!("5")), "{shown}");
    let (code, reply) = cluster.call("POST", MAPS, body).await;
    assert_eq!(code, 500, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_object_with_a_version_is_rejected_as_invalid() {
    let cluster = Cluster::new();
    let invalid = map(&json!({"name": "Not_A_Name", "resourceVersion": "5"}));
    let (code, reply) = cluster.call("POST", MAPS, invalid).await;
    assert_eq!((code, &reply["reason"]), (422, &json!("Invalid")), "{reply}");
    // POST does not parse versions that are not numbers.
    let (code, reply) =
        cluster.call("POST", MAPS, map(&json!({"name": "a", "resourceVersion": "bad"}))).await;
    assert_eq!(code, 201, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_creating_put_accepts_only_numeric_versions() {
    let cluster = Cluster::new();
    let lease = |name: &str, metadata: Value| {
        let mut lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
        lease["metadata"]["name"] = name.into();
        lease
    };
    let put = async |name: &str, metadata: Value| {
        cluster.call("PUT", &format!("{LEASES}/{name}"), lease(name, metadata)).await
    };
    assert_eq!(put("a", json!({"resourceVersion": "5"})).await.0, 201);
    let (code, reply) = put("b", json!({"resourceVersion": "bad"})).await;
    assert_eq!(code, 500, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_uid_for_a_missing_object_is_a_conflict() {
    let cluster = Cluster::new();
    let (code, reply) =
        apply(&cluster, &format!("{MAPS}/a"), &map(&json!({"name": "a", "uid": "other"}))).await;
    assert_eq!((code, &reply["reason"]), (409, &json!("Conflict")), "{reply}");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", "uid": "other"},
    });
    let (code, reply) = cluster.call("PUT", &format!("{LEASES}/a"), lease).await;
    assert_eq!((code, &reply["reason"]), (409, &json!("Conflict")), "{reply}");
    // The uid is checked before the version: 409, not 500.
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "a", "uid": "other", "resourceVersion": "bad"},
    });
    assert_eq!(cluster.call("PUT", &format!("{LEASES}/a"), lease).await.0, 409);
}

#[tokio::test(start_paused = true)]
async fn a_put_creates_kinds_that_allow_create_on_update() {
    let cluster = Cluster::new();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"});
    let limits = json!({"limits": [{"type": "Container", "max": {"cpu": "1"}}]});
    for (path, body) in [
        (format!("{rbac}/namespaces/default/roles/a"), json!({"rules": []})),
        (format!("{rbac}/namespaces/default/roles/b"), json!({})),
        (
            format!("{rbac}/clusterroles/a"),
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (format!("{rbac}/namespaces/default/rolebindings/a"), json!({"roleRef": role_ref})),
        (format!("{rbac}/clusterrolebindings/a"), json!({"roleRef": role_ref})),
        ("/api/v1/namespaces/default/limitranges/a".to_owned(), json!({"spec": limits})),
        ("/api/v1/namespaces/default/endpoints/a".to_owned(), json!({})),
        ("/apis/node.k8s.io/v1/runtimeclasses/a".to_owned(), json!({"handler": "h"})),
    ] {
        let mut body = body;
        body["metadata"]["name"] = path.rsplit('/').next().unwrap().into();
        let (code, reply) = cluster.call("PUT", &path, body).await;
        assert_eq!(code, 201, "{path}: {reply}");
    }
}
