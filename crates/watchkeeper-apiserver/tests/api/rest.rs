//! The verbs, as seen by in-process clients.

use std::time::Duration;

use watchkeeper_apiserver::{Clock, TokioClock};

use crate::support::{Cluster, read, version};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn an_update_without_changes_creates_no_version_and_no_event() {
    let cluster = Cluster::new();
    let created = cluster.ok("POST", MAPS, map("a")).await;
    let mut watch = cluster.watch(&format!("{MAPS}?watch=true&resourceVersion={}", version(&created))).await;
    let again = cluster.ok("PUT", &format!("{MAPS}/a"), map("a")).await;
    assert_eq!(version(&again), version(&created));
    let (_, patched) = cluster.patch(&format!("{MAPS}/a"), json!({"metadata": {"labels": {}}})).await;
    assert_eq!(version(&patched), version(&created));
    cluster.ok("POST", MAPS, map("b")).await;
    let (frame, object) = watch.next().await.unwrap();
    assert_eq!((frame.as_str(), &object["metadata"]["name"]), ("ADDED", &json!("b")));
}

#[tokio::test(start_paused = true)]
async fn a_stale_update_is_a_conflict() {
    let cluster = Cluster::new();
    let created = cluster.ok("POST", MAPS, map("a")).await;
    let mut first = created.clone();
    first["data"] = json!({"k": "1"});
    cluster.ok("PUT", &format!("{MAPS}/a"), first).await;
    let mut second = created;
    second["data"] = json!({"k": "2"});
    let (code, status) = cluster.call("PUT", &format!("{MAPS}/a"), second).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(cluster.get(&format!("{MAPS}/a")).await.1["data"]["k"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_list_at_a_future_version_waits_and_is_then_rejected() {
    let cluster = Cluster::new();
    let newest = version(&cluster.ok("GET", MAPS, Value::Null).await);
    let clock = TokioClock::new();
    let began = clock.now();
    let path = format!("{MAPS}?resourceVersion={}&resourceVersionMatch=NotOlderThan", newest + 1);
    let response = cluster.send("GET", &path, &Value::Null).await;
    assert_eq!(clock.now().saturating_sub(began), Duration::from_secs(3));
    assert_eq!(response.headers()["retry-after"], "1");
    let (code, status) = read(response).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));

    let waiting = cluster.get(&path);
    let writing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cluster.ok("POST", MAPS, map("a")).await
    };
    let ((code, list), _) = tokio::join!(waiting, writing);
    assert_eq!(
        (code, list["items"].as_array().unwrap().len()),
        (200, 1),
        "a version that is reached in time is served"
    );
}

#[tokio::test(start_paused = true)]
async fn pages_share_one_version_until_it_expires() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.ok("POST", MAPS, map(name)).await;
    }
    let first = cluster.ok("GET", &format!("{MAPS}?limit=1"), Value::Null).await;
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let next = format!("{MAPS}?limit=1&continue={}", first["metadata"]["continue"].as_str().unwrap());
    cluster.ok("DELETE", &format!("{MAPS}/b"), Value::Null).await;
    let second = cluster.ok("GET", &next, Value::Null).await;
    assert_eq!(second["items"][0]["metadata"]["name"], "b", "the old state");
    assert_eq!(version(&second), version(&first));

    cluster.ok("POST", "/-/control", json!({"action": "compact"})).await;
    let (code, status) = cluster.get(&next).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let token = status["metadata"]["continue"].as_str().unwrap();
    let rest = cluster.ok("GET", &format!("{MAPS}?continue={token}"), Value::Null).await;
    assert_eq!(rest["items"][0]["metadata"]["name"], "c", "the current state");
}

#[tokio::test(start_paused = true)]
async fn generated_names_are_unique() {
    let cluster = Cluster::new();
    let mut object = map("x");
    object["metadata"] = json!({"generateName": "x-"});
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let created = cluster.ok("POST", MAPS, object.clone()).await;
        names.insert(created["metadata"]["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(names.len(), 50);
    assert!(names.iter().all(|name| name.starts_with("x-") && name.len() == 7));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stores_nothing() {
    let cluster = Cluster::new();
    let before = version(&cluster.ok("GET", MAPS, Value::Null).await);
    let reply = cluster.ok("POST", &format!("{MAPS}?dryRun=All"), map("a")).await;
    assert!(reply["metadata"]["uid"].is_string() && reply["metadata"]["resourceVersion"].is_null());
    cluster.ok("POST", MAPS, map("b")).await;
    cluster.ok("DELETE", &format!("{MAPS}/b?dryRun=All"), Value::Null).await;
    let list = cluster.ok("GET", MAPS, Value::Null).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(version(&list), before + 1);
}

#[tokio::test(start_paused = true)]
async fn removing_the_last_finalizer_completes_the_deletion() {
    let cluster = Cluster::new();
    let mut object = map("a");
    object["metadata"]["finalizers"] = json!(["example.com/one"]);
    cluster.ok("POST", MAPS, object).await;
    let path = format!("{MAPS}/a");
    let marked = cluster.ok("DELETE", &path, Value::Null).await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let (code, status) = cluster.call("POST", MAPS, map("a")).await;
    assert_eq!((code, &status["reason"]), (409, &json!("AlreadyExists")));
    let (code, _) = cluster.patch(&path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(code, 200);
    assert_eq!(cluster.get(&path).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_second_delete_can_shorten_the_grace_period_of_a_pod() {
    let cluster = Cluster::new();
    let pods = "/api/v1/namespaces/default/pods";
    let mut object = pod("p");
    object["spec"]["nodeName"] = "n".into();
    cluster.ok("POST", pods, object).await;
    let path = format!("{pods}/p");
    let marked = cluster.ok("DELETE", &path, Value::Null).await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    let longer = cluster.ok("DELETE", &path, json!({"gracePeriodSeconds": 60})).await;
    assert_eq!(longer["metadata"], marked["metadata"], "a later delete cannot extend the grace period");
    let shorter = cluster.ok("DELETE", &path, json!({"gracePeriodSeconds": 5})).await;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    cluster.ok("DELETE", &path, json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(cluster.get(&path).await.0, 404);

    cluster.ok("POST", pods, pod("unscheduled")).await;
    cluster.ok("DELETE", &format!("{pods}/unscheduled"), Value::Null).await;
    assert_eq!(cluster.get(&format!("{pods}/unscheduled")).await.0, 404, "no container is running");
}

#[tokio::test(start_paused = true)]
async fn creating_in_a_missing_or_terminating_namespace_is_rejected() {
    let cluster = Cluster::new();
    let (code, status) = cluster.call("POST", "/api/v1/namespaces/none/configmaps", map("a")).await;
    assert_eq!((code, &status["details"]["kind"]), (404, &json!("namespaces")));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}});
    cluster.ok("POST", "/api/v1/namespaces", namespace).await;
    cluster.ok("DELETE", "/api/v1/namespaces/ns", Value::Null).await;
    let (code, status) = cluster.call("POST", "/api/v1/namespaces/ns/configmaps", map("a")).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")));
}

#[tokio::test(start_paused = true)]
async fn evictions_are_rejected_until_the_disruption_budget_allows_them() {
    let cluster = Cluster::new();
    let pods = "/api/v1/namespaces/default/pods";
    cluster.ok("POST", pods, pod("p")).await;
    cluster.patch(&format!("{pods}/p/status"), json!({"status": {"phase": "Running"}})).await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    });
    cluster.ok("POST", budgets, budget).await;
    let status = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0});
    cluster.patch(&format!("{budgets}/b/status"), json!({"status": status})).await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    // An unready pod does not count in the budget, and this budget is satisfied.
    let dry = cluster.call("POST", &format!("{pods}/p/eviction?dryRun=All"), eviction.clone()).await;
    assert_eq!(dry.0, 201);
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.patch(&format!("{pods}/p/status"), ready).await;
    let (code, status) = cluster.call("POST", &format!("{pods}/p/eviction"), eviction.clone()).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (429, &json!("DisruptionBudget")));
    cluster.patch(&format!("{budgets}/b/status"), json!({"status": {"disruptionsAllowed": 1}})).await;
    let (code, _) = cluster.call("POST", &format!("{pods}/p/eviction"), eviction).await;
    assert_eq!(code, 201);
    assert_eq!(cluster.get(&format!("{pods}/p")).await.0, 404);
    let spent = cluster.ok("GET", &format!("{budgets}/b"), Value::Null).await;
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
}

#[tokio::test(start_paused = true)]
async fn writing_a_scale_sets_and_manages_the_replicas_of_its_object() {
    let cluster = Cluster::new();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}]},
            "template": {"metadata": {"labels": {"app": "x", "t": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
        },
    });
    cluster.ok("POST", deployments, deployment).await;
    let path = format!("{deployments}/d/scale");
    let scale = cluster.ok("GET", &path, Value::Null).await;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    assert_eq!(scale["status"]["selector"], "app=x,t in (a,b)");
    let mut expected = scale.clone();
    expected["spec"]["replicas"] = 5.into();
    let reply = cluster.ok("PUT", &format!("{path}?fieldManager=scaler"), expected).await;
    assert_eq!(reply["spec"]["replicas"], 5);
    let (code, _) = cluster.call("PUT", &path, scale).await;
    assert_eq!(code, 409, "a scale of an older version");
    let (code, status) = cluster.patch(&path, json!({"spec": {"replicas": -1}})).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.replicas")));
    let object = cluster.ok("GET", &format!("{deployments}/d"), Value::Null).await;
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(5), &json!(2)));
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    let scaler = managers.iter().find(|entry| entry["manager"] == "scaler").unwrap();
    assert_eq!(scaler["subresource"], "scale");
    assert!(scaler["fieldsV1"]["f:spec"]["f:replicas"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_immediately_and_is_deleted_with_its_objects() {
    let cluster = Cluster::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    cluster.ok("POST", definitions, definition).await;
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    let mut foo =
        json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"a": 1}});
    cluster.ok("POST", foos, foo.clone()).await;
    foo["metadata"] = json!({"name": "held", "finalizers": ["example.com/x"]});
    cluster.ok("POST", foos, foo.clone()).await;
    assert_eq!(cluster.get("/apis/example.com/v1").await.0, 200);

    cluster.ok("DELETE", &format!("{definitions}/foos.example.com"), Value::Null).await;
    while cluster.get(&format!("{foos}/f")).await.0 != 404 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let left = cluster.ok("GET", foos, Value::Null).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "an object with a finalizer keeps its definition");
    foo["metadata"] = json!({"name": "new"});
    assert_eq!(cluster.call("POST", foos, foo).await.0, 405);
    cluster.patch(&format!("{foos}/held"), json!({"metadata": {"finalizers": null}})).await;
    while cluster.get(&format!("{definitions}/foos.example.com")).await.0 != 404 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(cluster.get(foos).await, (404, json!("404 page not found\n")));
}

#[tokio::test(start_paused = true)]
async fn node_proxying_subresources_are_rejected_with_405() {
    let cluster = Cluster::new();
    let pods = "/api/v1/namespaces/default/pods";
    let mut object = pod("p");
    object["spec"]["nodeName"] = "n".into();
    cluster.ok("POST", pods, object).await;
    assert_eq!(cluster.get(&format!("{pods}/p/log")).await.0, 404, "the node does not exist");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    cluster.ok("POST", "/api/v1/nodes", node).await;
    for path in ["log", "exec", "attach", "portforward", "proxy"] {
        let (code, status) = cluster.get(&format!("{pods}/p/{path}")).await;
        assert_eq!((code, &status["kind"]), (405, &json!("Status")), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_too_large_or_not_objects_are_rejected() {
    let cluster = Cluster::new();
    let mut large = map("a");
    large["data"] = json!({"k": "x".repeat(3 * 1024 * 1024)});
    assert_eq!(cluster.call("POST", MAPS, large).await.0, 413);
    for body in [json!([]), json!(1), json!("x"), json!({"metadata": 1}), json!({"metadata": {"name": 1}})] {
        let (code, status) = cluster.call("POST", MAPS, body.clone()).await;
        assert_eq!((code, &status["kind"]), (400, &json!("Status")), "{body}");
    }
    assert_eq!(cluster.get("/api/v1/namespaces/%ff/pods").await.0, 400);
}
