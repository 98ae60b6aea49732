//! Garbage collection, observed through the API.

use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::session::{Session, config_map, reference};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test(start_paused = true)]
async fn background_deletion_deletes_dependents_after_their_owner() {
    let session = Session::new();
    let owner = session.create(MAPS, config_map("owner", &[], &[])).await;
    let child = session.create(MAPS, config_map("child", &[reference(&owner, false)], &[])).await;
    session.create(MAPS, config_map("grandchild", &[reference(&child, true)], &[])).await;
    session.create(MAPS, config_map("stranger", &[], &[])).await;
    session.rest().await;
    assert_eq!(session.names(MAPS).await, ["child", "grandchild", "owner", "stranger"]);
    session.delete(&at("owner"), "Background").await;
    assert!(session.get(&at("owner")).await.is_none(), "the owner does not wait");
    session.until_gone(&at("grandchild")).await;
    assert_eq!(session.names(MAPS).await, ["stranger"]);
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_removes_the_owner_last() {
    let session = Session::new();
    let owner = session.create(MAPS, config_map("owner", &[], &[])).await;
    session.create(MAPS, config_map("child", &[reference(&owner, true)], &["example.com/keep"])).await;
    let deleted = session.delete(&at("owner"), "Foreground").await;
    assert_eq!(deleted["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    session
        .until(&at("child"), |child| {
            child.is_some_and(|child| child["metadata"]["deletionTimestamp"].is_string())
        })
        .await;
    session.rest().await;
    assert!(session.get(&at("owner")).await.is_some(), "the owner waits for its blocking dependent");
    session.patch(&at("child"), json!({"metadata": {"finalizers": null}})).await;
    session.until_gone(&at("owner")).await;
    assert!(session.get(&at("child")).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn orphaned_dependents_remain_after_their_owner() {
    let session = Session::new();
    let owner = session.create(MAPS, config_map("owner", &[], &[])).await;
    let other = session.create(MAPS, config_map("other", &[], &[])).await;
    session.create(MAPS, config_map("a", &[reference(&owner, true)], &[])).await;
    session.create(MAPS, config_map("b", &[reference(&owner, true), reference(&other, true)], &[])).await;
    session.delete(&at("owner"), "Orphan").await;
    session.until_gone(&at("owner")).await;
    session.rest().await;
    assert_eq!(session.names(MAPS).await, ["a", "b", "other"]);
    assert!(session.get(&at("a")).await.unwrap()["metadata"].get("ownerReferences").is_none());
    let owners = &session.get(&at("b")).await.unwrap()["metadata"]["ownerReferences"];
    assert_eq!(owners, &json!([reference(&other, true)]));
}

#[tokio::test(start_paused = true)]
async fn an_owner_with_another_uid_or_namespace_does_not_count() {
    let session = Session::new();
    let first = session.create(MAPS, config_map("owner", &[], &[])).await;
    session.delete(&at("owner"), "Background").await;
    let second = session.create(MAPS, config_map("owner", &[], &[])).await;
    session.create(MAPS, config_map("child", &[reference(&first, false)], &[])).await;
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    session.create(elsewhere, config_map("child", &[reference(&second, false)], &[])).await;
    session.until_gone(&at("child")).await;
    session.until_gone(&format!("{elsewhere}/child")).await;
    assert_eq!(session.names(MAPS).await, ["owner"]);
}

#[tokio::test(start_paused = true)]
async fn dangling_references_are_removed_while_another_owner_lives() {
    let session = Session::new();
    let node = session
        .create("/api/v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        .await;
    let owner = session.create(MAPS, config_map("owner", &[], &[])).await;
    session.create(MAPS, config_map("child", &[reference(&owner, true), reference(&node, false)], &[])).await;
    session.delete(&at("owner"), "Foreground").await;
    session.until_gone(&at("owner")).await;
    let child = session.get(&at("child")).await.unwrap();
    assert_eq!(child["metadata"]["ownerReferences"], json!([reference(&node, false)]));
    session.delete("/api/v1/nodes/n", "Background").await;
    session.until_gone(&at("child")).await;
}

#[tokio::test(start_paused = true)]
async fn dependents_of_unknown_kinds_are_kept() {
    let session = Session::new();
    let owner = json!({
        "apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "foo", "uid": "no-uid"},
    });
    session.create(MAPS, config_map("child", &[reference(&owner, false)], &[])).await;
    session.rest().await;
    assert_eq!(session.names(MAPS).await, ["child"]);
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_of_a_deployment_deletes_replica_sets_and_pods() {
    let session = Session::new();
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    let (deployments, sets, pods) = (
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/replicasets",
        "/api/v1/namespaces/default/pods",
    );
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
    let deployment = session.create(deployments, deployment).await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec,
        "metadata": {"name": "web-1", "labels": {"app": "web"}, "ownerReferences": [reference(&deployment, true)]},
    });
    let set = session.create(sets, set).await;
    for number in 0..30 {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"name": format!("web-1-{number}"), "ownerReferences": [reference(&set, true)]},
        });
        session.create(pods, pod).await;
    }
    session.delete(&format!("{deployments}/web"), "Foreground").await;
    session.until_gone(&format!("{deployments}/web")).await;
    assert_eq!(
        session.names(sets).await.len() + session.names(pods).await.len(),
        0,
        "all dependents were deleted before the owner"
    );
}

#[tokio::test(start_paused = true)]
async fn the_garbage_collector_recovers_from_expired_history() {
    let session = Session::with(ApiServer::builder().history(1, std::time::Duration::from_secs(1)).build());
    let mut owners = Vec::new();
    for number in 0..50 {
        let owner = session.create(MAPS, config_map(&format!("owner-{number}"), &[], &[])).await;
        let child = config_map(&format!("child-{number}"), &[reference(&owner, false)], &[]);
        session.create(MAPS, child).await;
        owners.push(format!("owner-{number}"));
    }
    for owner in owners {
        session.delete(&at(&owner), "Background").await;
    }
    session.until(MAPS, |list| list.is_some_and(|list| list["items"] == json!([]))).await;
}

#[tokio::test(start_paused = true)]
async fn without_controllers_dependents_are_not_deleted() {
    let session = Session::with(ApiServer::builder().controllers(false).build());
    let owner = session.create(MAPS, config_map("owner", &[], &[])).await;
    session.create(MAPS, config_map("child", &[reference(&owner, true)], &[])).await;
    session.delete(&at("owner"), "Foreground").await;
    session.rest().await;
    assert_eq!(session.names(MAPS).await, ["child", "owner"]);
}

#[tokio::test(start_paused = true)]
async fn runs_with_one_seed_are_identical() {
    async fn observe_run() -> Vec<Value> {
        let session = Session::with(ApiServer::builder().seed(7).build());
        let owner = session.create(MAPS, config_map("owner", &[], &[])).await;
        for number in 0..20 {
            session.create(MAPS, config_map(&format!("c{number}"), &[reference(&owner, true)], &[])).await;
        }
        session.delete(&at("owner"), "Orphan").await;
        session.until_gone(&at("owner")).await;
        let list = session.get(MAPS).await.unwrap();
        let version = |item: &Value| json!([item["metadata"]["name"], item["metadata"]["resourceVersion"]]);
        list["items"].as_array().unwrap().iter().map(version).collect()
    }
    assert_eq!(observe_run().await, observe_run().await);
}
