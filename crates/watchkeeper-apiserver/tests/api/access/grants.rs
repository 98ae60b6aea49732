//! Permissions that depend on more than the verb and the resource of a request.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Caller, Guarded, ann};
use crate::support::Watch;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// A PEM certificate request for the name `web`, in base64.
const CSR: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISE1IQUNBUUF3RGpFTU1Bb0dBMVVFQXd3RGQyVmlNRmt3RXdZ\
    SEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRApRZ0FFVFdVeVNLcW12MGh4VlF2ZmRZblJZL0lGekp2TVhWdnVxSkNySDh0OGppd1gv\
    L3UxN25HakpVZ1JCZEZQClE5VU9GcWVKelpONHAzN2lqRE1obzczT1dhQUFNQW9HQ0NxR1NNNDlCQU1DQTBjQU1FUUNJQWFxNG9w\
    NTIzWTYKdkJ2cnZxdGt5Mlg3QmNxUzRUc212TWVwWEtNQ2x1cnhBaUJUTTFXazE5VUs3dnBwam5KMm9aUldWd2FFNXNTRQpXTXVF\
    Q3RGYVZ2RnNjdz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

fn rule(verbs: &[&str], group: &str, resource: &str) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]})
}

#[tokio::test(start_paused = true)]
async fn put_and_apply_that_create_an_object_need_the_permission_to_create_it() {
    let guarded = Guarded::with(watchkeeper_apiserver::ApiServer::builder().controllers(false));
    let maps = "/api/v1/namespaces/default/configmaps";
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    guarded
        .grant(
            "changer",
            ann(),
            json!([
                rule(&["get", "patch", "update"], "", "configmaps"),
                rule(&["get", "patch", "update"], "coordination.k8s.io", "leases"),
            ]),
        )
        .await;
    for query in ["", "?dryRun=All"] {
        for (path, object, resource) in
            [(format!("{maps}/m"), &map, "configmaps"), (format!("{leases}/l"), &lease, "leases")]
        {
            let (code, status) = guarded.ann().apply(&format!("{path}{query}"), object).await;
            assert_eq!(
                (code, &status["reason"]),
                (403, &json!("Forbidden")),
                "apply {path}{query}: {status}"
            );
            assert_eq!(status["details"]["kind"], resource);
            let message = status["message"].as_str().unwrap();
            assert!(message.contains("cannot create resource"), "{message}");
        }
        let path = format!("{leases}/l{query}");
        let (code, status) = guarded.ann().call("PUT", &path, lease.clone()).await;
        assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "PUT {path}: {status}");
    }
    assert_eq!(guarded.admin().get(&format!("{maps}/m")).await.0, 404, "nothing was created");
    guarded.admin().ok("POST", maps, map.clone()).await;
    let stored = guarded.admin().ok("POST", leases, lease.clone()).await;
    let (code, _) = guarded.ann().apply(&format!("{maps}/m"), &map).await;
    assert_eq!(code, 200, "an object that exists is only changed");
    assert_eq!(guarded.ann().call("PUT", &format!("{leases}/l"), stored).await.0, 200);

    let creator =
        json!([rule(&["create"], "", "configmaps"), rule(&["create"], "coordination.k8s.io", "leases")]);
    guarded.grant("creator", ann(), creator).await;
    for (path, mut object) in [(format!("{maps}/n"), map), (format!("{leases}/n"), lease)] {
        object["metadata"]["name"] = "n".into();
        let (code, created) = guarded.ann().apply(&path, &object).await;
        assert_eq!(code, 201, "{created}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_that_creates_is_permitted_by_the_name_of_the_object() {
    let guarded = Guarded::new();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let named = json!({"verbs": ["create", "update"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                       "resourceNames": ["mine"]});
    guarded.grant("one", ann(), json!([named])).await;
    for (name, expected) in [("mine", 201), ("other", 403)] {
        let lease = json!({"metadata": {"name": name}});
        assert_eq!(guarded.ann().call("PUT", &format!("{leases}/{name}"), lease).await.0, expected, "{name}");
    }
}

/// Waits until a watched role has rules that `is_expected`.
async fn watched_rules(watch: &mut Watch, is_expected: impl Fn(&Value) -> bool) {
    let expected = async {
        loop {
            let (_, role) = watch.next().await.expect("the watch continues");
            if is_expected(&role["rules"]) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), expected).await.expect("the rules are stored");
}

async fn role(caller: &Caller<'_>, name: &str, labels: Value, rules: Value) {
    caller
        .ok(
            "POST",
            &format!("{RBAC}/clusterroles"),
            json!({"metadata": {"name": name, "labels": labels}, "rules": rules}),
        )
        .await;
}

#[tokio::test]
async fn an_aggregated_role_contains_the_rules_of_the_roles_it_selects() {
    let guarded = Guarded::new();
    let admin = guarded.admin();
    let pods = rule(&["list"], "", "pods");
    let maps = rule(&["list"], "", "configmaps");
    role(&admin, "pods", json!({"to-all": "yes"}), json!([pods])).await;
    let selectors = json!([{"matchLabels": {"to-all": "yes"}}]);
    let aggregated =
        json!({"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
    admin.ok("POST", &format!("{RBAC}/clusterroles"), aggregated).await;
    guarded.grant("unrelated", ann(), json!([])).await;
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"});
    let binding = json!({"metadata": {"name": "all"}, "roleRef": role_ref, "subjects": [ann()]});
    admin.ok("POST", &format!("{RBAC}/clusterrolebindings"), binding).await;

    let path = format!("{RBAC}/clusterroles?watch=true&fieldSelector=metadata.name%3Dall");
    let mut watch = admin.watch(&path).await;
    watched_rules(&mut watch, |rules| *rules == json!([pods])).await;
    assert_eq!(guarded.ann().get("/api/v1/namespaces/default/pods").await.0, 200);
    assert_eq!(guarded.ann().get("/api/v1/namespaces/default/configmaps").await.0, 403);

    role(&admin, "maps", json!({"to-all": "yes"}), json!([maps])).await;
    watched_rules(&mut watch, |rules| *rules == json!([maps, pods])).await;
    assert_eq!(guarded.ann().get("/api/v1/namespaces/default/configmaps").await.0, 200);

    admin.ok("DELETE", &format!("{RBAC}/clusterroles/pods"), Value::Null).await;
    watched_rules(&mut watch, |rules| *rules == json!([maps])).await;
    assert_eq!(guarded.ann().get("/api/v1/namespaces/default/pods").await.0, 403);
    let all = admin.ok("GET", &format!("{RBAC}/clusterroles/all"), Value::Null).await;
    let managers = all["metadata"]["managedFields"].as_array().unwrap();
    let manager =
        managers.iter().find(|entry| entry["manager"] == "clusterrole-aggregation-controller").unwrap();
    assert_eq!(manager["operation"], "Apply");
    guarded.server.shutdown().await;
}

#[tokio::test]
async fn the_default_roles_aggregate_rules_added_by_operators() {
    let guarded = Guarded::new();
    let admin = guarded.admin();
    let foos = rule(&["list"], "acme.io", "foos");
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    role(&admin, "foos", label, json!([foos])).await;
    for name in ["view", "edit", "admin"] {
        let path = format!("{RBAC}/clusterroles?watch=true&fieldSelector=metadata.name%3D{name}");
        let mut watch = admin.watch(&path).await;
        watched_rules(&mut watch, |rules| rules.as_array().is_some_and(|rules| rules.contains(&foos))).await;
    }
    guarded.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_aggregated_role_cannot_be_written_without_every_permission() {
    let guarded = Guarded::new();
    let path = format!("{RBAC}/clusterroles");
    guarded
        .grant(
            "roles",
            ann(),
            json!([rule(&["create", "get", "update", "patch"], "rbac.authorization.k8s.io", "clusterroles")]),
        )
        .await;
    let selectors = json!([{"matchLabels": {"x": "y"}}]);
    let aggregated =
        json!({"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
    let (code, status) = guarded.ann().call("POST", &path, aggregated.clone()).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with("must have cluster-admin privileges to use the aggregationRule"), "{message}");
    assert_eq!(guarded.ann().call("POST", &path, json!({"metadata": {"name": "plain"}})).await.0, 201);
    let patch = json!({"aggregationRule": {"clusterRoleSelectors": selectors}});
    let patched =
        guarded.ann().send("PATCH", &format!("{path}/plain"), "application/merge-patch+json", &patch).await;
    assert_eq!(patched.0, 403, "{}", patched.1);
    assert_eq!(guarded.admin().call("POST", &path, aggregated).await.0, 201);
    let relabel = json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}});
    let relabelled = guarded
        .ann()
        .send("PATCH", &format!("{path}/cluster-admin"), "application/merge-patch+json", &relabel)
        .await;
    assert_eq!(relabelled.0, 403, "a label can grant the rules of the role");
}

#[tokio::test(start_paused = true)]
async fn approving_a_certificate_request_needs_the_permission_on_its_signer() {
    let guarded = Guarded::new();
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let update =
        rule(&["get", "patch", "update"], "certificates.k8s.io", "certificatesigningrequests/approval");
    guarded.grant("approver", ann(), json!([update])).await;
    let request = json!({"metadata": {"name": "r"}, "spec": {"request": CSR, "signerName": "acme.io/web", "usages": ["client auth"]}});
    guarded.admin().ok("POST", path, request).await;
    let approval = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "Test", "message": "m"}]}});
    let approve = || async {
        let caller = guarded.ann();
        caller.send("PATCH", &format!("{path}/r/approval"), "application/merge-patch+json", &approval).await
    };
    let (code, status) = approve().await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{status}");
    assert!(status["message"].as_str().unwrap().contains("signerName \"acme.io/web\""), "{status}");
    let signers = json!({"verbs": ["approve"], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
                         "resourceNames": ["acme.io/*"]});
    guarded.grant("signers", ann(), json!([signers])).await;
    assert_eq!(approve().await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_one_name_is_permitted_by_that_name() {
    let guarded = Guarded::new();
    let named = json!({"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]});
    guarded.grant("one", ann(), json!([named])).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    for (query, expected) in [
        ("?fieldSelector=metadata.name%3Dmine", 200),
        ("?fieldSelector=metadata.name%3Dmine,type%3DOpaque", 200),
        ("?fieldSelector=metadata.name%3Dother", 403),
        ("?fieldSelector=metadata.name!%3Dmine", 403),
        ("", 403),
    ] {
        assert_eq!(guarded.ann().get(&format!("{secrets}{query}")).await.0, expected, "{query}");
    }
}
