//! Deletion of custom resource definitions, observed through the API.

use std::{pin::pin, time::Duration};

use futures_util::{AsyncBufReadExt, TryStreamExt};
use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, Clock, TokioClock};

use crate::session::{Session, config_map, reference};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com";
const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";

fn definition() -> Value {
    definition_of("Foo", "foo")
}

fn definition_of(kind: &str, singular: &str) -> Value {
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List")},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn foo(name: &str, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name, "finalizers": finalizers}})
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_removed_after_its_objects_with_and_without_cluster_controllers() {
    for has_controllers in [true, false] {
        let session = Session::with(ApiServer::builder().controllers(has_controllers).build());
        session.create(DEFINITIONS, definition()).await;
        session.create(FOOS, foo("free", &[])).await;
        session.create(FOOS, foo("kept", &["example.com/keep"])).await;
        let deleted = session.delete(DEFINITION, "Background").await;
        assert_eq!(deleted["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
        session.until_gone(&format!("{FOOS}/free")).await;
        session.rest().await;

        let found = session.get(DEFINITION).await.unwrap();
        let conditions = found["status"]["conditions"].as_array().unwrap();
        let terminating = conditions.iter().find(|condition| condition["type"] == "Terminating").unwrap();
        assert_eq!(terminating["reason"], "InstanceDeletionInProgress");
        assert_eq!(session.names(FOOS).await, ["kept"]);
        assert_eq!(session.request("POST", FOOS, Some(&foo("late", &[]))).await, Err(405));

        session.patch(&format!("{FOOS}/kept"), json!({"metadata": {"finalizers": null}})).await;
        session.until_gone(DEFINITION).await;
        assert_eq!(session.request("GET", FOOS, None).await, Err(404), "the kind is no longer served");
        session.create(DEFINITIONS, definition()).await;
        assert_eq!(session.names(FOOS).await, [""; 0], "no object is recreated");
    }
}

#[tokio::test(start_paused = true)]
async fn dependents_of_custom_objects_are_deleted_with_their_definition() {
    let session = Session::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    session.create(DEFINITIONS, definition()).await;
    let owner = session.create(FOOS, foo("owner", &[])).await;
    session.create(maps, config_map("child", &[reference(&owner, true)], &[])).await;
    session.rest().await;
    assert_eq!(session.names(maps).await, ["child"]);
    session.delete(DEFINITION, "Background").await;
    session.until_gone(DEFINITION).await;
    session.until_gone(&format!("{maps}/child")).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_looked_up_once_its_kind_is_defined() {
    let session = Session::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    let nobody = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "nobody", "uid": "no-uid"}});
    session.create(maps, config_map("child", &[reference(&nobody, true)], &[])).await;
    session.rest().await;
    assert_eq!(session.names(maps).await, ["child"]);
    session.create(DEFINITIONS, definition()).await;
    session.until_gone(&format!("{maps}/child")).await;
}

#[tokio::test(start_paused = true)]
async fn deleting_a_namespace_deletes_its_custom_objects() {
    let session = Session::new();
    session.create(DEFINITIONS, definition()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    session.create("/api/v1/namespaces", namespace).await;
    let foos = "/apis/example.com/v1/namespaces/n/foos";
    session.create(foos, foo("kept", &["example.com/keep"])).await;
    session.create(foos, foo("free", &[])).await;
    session.create(FOOS, foo("elsewhere", &[])).await;
    session.delete("/api/v1/namespaces/n", "Background").await;
    session.until_gone(&format!("{foos}/free")).await;
    session.rest().await;
    assert_eq!(session.names("/apis/example.com/v1/foos").await, ["elsewhere", "kept"]);
    session.patch(&format!("{foos}/kept"), json!({"metadata": {"finalizers": null}})).await;
    session.until_gone("/api/v1/namespaces/n").await;
    assert_eq!(session.names("/apis/example.com/v1/foos").await, ["elsewhere"]);
}

#[tokio::test(start_paused = true)]
async fn watches_of_a_kind_end_with_its_definition() {
    let session = Session::new();
    session.create(DEFINITIONS, definition()).await;
    session.create(FOOS, foo("one", &[])).await;
    let path = format!("{FOOS}?watch=true&resourceVersion=0&timeoutSeconds=3600");
    let frames = session.watch(&path).await;
    session.delete(DEFINITION, "Background").await;
    session.until_gone(DEFINITION).await;
    let clock = TokioClock::new();
    let before = clock.now();
    let mut frames = pin!(frames.lines());
    let mut types = Vec::new();
    while let Some(frame) = frames.try_next().await.unwrap() {
        let frame: Value = serde_json::from_str(&frame).unwrap();
        types.push(frame["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(types, ["ADDED", "DELETED"]);
    assert!(clock.now() < before + Duration::from_mins(1), "the watch ended before its timeout");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_watch_of_a_custom_kind_ends_when_that_kind_is_removed_and_not_before() {
    let session = Session::new();
    session.create(DEFINITIONS, definition()).await;
    let path = format!("{FOOS}?watch=true&timeoutSeconds=3600");
    let mut frames = pin!(session.watch(&path).await.lines());
    let mut next = async || {
        let frame = tokio::time::timeout(Duration::from_mins(1), frames.try_next()).await.ok()?.unwrap();
        Some(frame.map(|frame| serde_json::from_str::<Value>(&frame).unwrap()["type"].clone()))
    };
    assert_eq!(next().await, None, "the watch waits");
    session.create(DEFINITIONS, definition_of("Bar", "bar")).await;
    session.delete(&DEFINITION.replace("foos", "bars"), "Background").await;
    assert_eq!(next().await, None, "other kinds do not concern the watch");
    session.create(FOOS, foo("one", &[])).await;
    assert_eq!(next().await, Some(Some("ADDED".into())));
    assert_eq!(next().await, None);
    session.delete(DEFINITION, "Background").await;
    assert_eq!(next().await, Some(Some("DELETED".into())));
    assert_eq!(next().await, Some(None), "the end of the watch");
}
