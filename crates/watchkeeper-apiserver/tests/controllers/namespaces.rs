//! Namespaces and their default objects, observed through the API.

use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::session::{Session, config_map};

const NAMESPACES: &str = "/api/v1/namespaces";

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

#[tokio::test(start_paused = true)]
async fn a_new_server_has_system_namespaces_with_default_service_accounts() {
    let session = Session::new();
    let names = ["default", "kube-node-lease", "kube-public", "kube-system"];
    assert_eq!(session.names(NAMESPACES).await, names);
    for name in names {
        session.until(&format!("{NAMESPACES}/{name}/serviceaccounts/default"), |found| found.is_some()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn system_namespaces_are_protected_or_recreated() {
    let session = Session::new();
    for name in ["default", "kube-public", "kube-system"] {
        let reply = session.request("DELETE", &format!("{NAMESPACES}/{name}"), None).await;
        assert_eq!(reply, Err(403), "{name}");
    }
    let path = format!("{NAMESPACES}/kube-node-lease");
    let uid = session.get(&path).await.unwrap()["metadata"]["uid"].clone();
    session.delete(&path, "Background").await;
    session.until(&path, |found| found.is_some_and(|found| found["metadata"]["uid"] != uid)).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_namespace_is_active_and_its_service_account_is_recreated() {
    let session = Session::new();
    let created = session.create(NAMESPACES, namespace("n")).await;
    assert_eq!(
        (&created["status"]["phase"], &created["spec"]["finalizers"]),
        (&json!("Active"), &json!(["kubernetes"]))
    );
    let account = format!("{NAMESPACES}/n/serviceaccounts/default");
    let first = session.until(&account, |found| found.is_some()).await.unwrap();
    session.delete(&account, "Background").await;
    let second = session.until(&account, |found| found.is_some()).await.unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_namespace_deletes_all_of_its_objects() {
    let session = Session::new();
    session.create(NAMESPACES, namespace("n")).await;
    for number in 0..150 {
        session
            .create(&format!("{NAMESPACES}/n/configmaps"), config_map(&format!("c{number}"), &[], &[]))
            .await;
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    session.create(&format!("{NAMESPACES}/n/pods"), pod).await;
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}});
    session.create("/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles", role).await;
    let deleted = session.delete(&format!("{NAMESPACES}/n"), "Background").await;
    assert_eq!(deleted["status"]["phase"], "Terminating");
    session.until_gone(&format!("{NAMESPACES}/n")).await;

    session.create(NAMESPACES, namespace("n")).await;
    assert_eq!(session.names(&format!("{NAMESPACES}/n/configmaps")).await, [""; 0]);
    assert_eq!(session.names(&format!("{NAMESPACES}/n/pods")).await, [""; 0]);
    assert_eq!(session.names("/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_reports_remaining_finalizers() {
    let session = Session::new();
    session.create(NAMESPACES, namespace("n")).await;
    let maps = format!("{NAMESPACES}/n/configmaps");
    session.create(&maps, config_map("kept", &[], &["example.com/keep"])).await;
    session.delete(&format!("{NAMESPACES}/n"), "Background").await;
    let found = session
        .until(&format!("{NAMESPACES}/n"), |found| {
            found.and_then(|found| condition(found, "NamespaceFinalizersRemaining")).is_some()
        })
        .await
        .unwrap();
    let finalizers = condition(&found, "NamespaceFinalizersRemaining").unwrap();
    assert_eq!(
        (&finalizers["status"], &finalizers["reason"]),
        (&json!("True"), &json!("SomeFinalizersRemain"))
    );
    assert_eq!(
        finalizers["message"],
        "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
    );
    let refused = session.request("POST", &maps, Some(&config_map("late", &[], &[]))).await;
    assert_eq!(refused, Err(403), "new objects are rejected");
    session.rest().await;
    session.patch(&format!("{maps}/kept"), json!({"metadata": {"finalizers": null}})).await;
    session.until_gone(&format!("{NAMESPACES}/n")).await;
}

#[tokio::test(start_paused = true)]
async fn pods_on_a_missing_node_do_not_block_namespace_deletion() {
    let session = Session::new();
    session.create(NAMESPACES, namespace("n")).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]},
    });
    session.create(&format!("{NAMESPACES}/n/pods"), pod).await;
    session.delete(&format!("{NAMESPACES}/n"), "Background").await;
    session.until_gone(&format!("{NAMESPACES}/n")).await;
}

#[tokio::test(start_paused = true)]
async fn without_controllers_a_namespace_terminates_until_its_finalizers_are_removed() {
    let session = Session::with(ApiServer::builder().controllers(false).build());
    session.create(NAMESPACES, namespace("n")).await;
    session.delete(&format!("{NAMESPACES}/n"), "Background").await;
    session.rest().await;
    let mut found = session.get(&format!("{NAMESPACES}/n")).await.unwrap();
    assert_eq!(session.names(&format!("{NAMESPACES}/n/serviceaccounts")).await, [""; 0]);
    found["spec"]["finalizers"] = json!([]);
    session.request("PUT", &format!("{NAMESPACES}/n/finalize"), Some(&found)).await.unwrap();
    assert!(session.get(&format!("{NAMESPACES}/n")).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn shutdown_stops_the_controllers() {
    let session = Session::new();
    session.create(NAMESPACES, namespace("n")).await;
    session.delete(&format!("{NAMESPACES}/n"), "Background").await;
    session.server.shutdown().await;
    let before = session.get(NAMESPACES).await.unwrap();
    session.rest().await;
    assert_eq!(session.get(NAMESPACES).await.unwrap(), before, "the controllers no longer write");
}

#[tokio::test(start_paused = true)]
async fn a_tls_server_publishes_its_ca_in_every_namespace() {
    let session = Session::new();
    let map = format!("{NAMESPACES}/n/configmaps/kube-root-ca.crt");
    session.create(NAMESPACES, namespace("n")).await;
    session.rest().await;
    assert!(session.get(&map).await.is_none(), "the config map does not exist yet");
    let endpoint = session.server.listen_tls(([127, 0, 0, 1], 0).into()).await.unwrap();
    let found = session.until(&map, |found| found.is_some()).await.unwrap();
    assert_eq!(found["data"]["ca.crt"].as_str(), endpoint.authority());
    session.patch(&map, json!({"data": {"ca.crt": "forged"}})).await;
    let is_right = |found: Option<&Value>| {
        found.is_some_and(|found| found["data"]["ca.crt"].as_str() == endpoint.authority())
    };
    session.until(&map, is_right).await;
    session.server.shutdown().await;
}
