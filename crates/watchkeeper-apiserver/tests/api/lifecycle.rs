//! The life of an object from its creation to the removal of its last finalizer, as a controller observes it.

use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_apiserver::{Clock, TokioClock};

use crate::support::{Cluster, read, version};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
        "status": {"replicas": 7},
    })
}

fn definition(version: &Value) -> Value {
    json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [version],
        },
    })
}

fn open_version(name: &str, is_served: bool, is_storage: bool) -> Value {
    json!({
        "name": name, "served": is_served, "storage": is_storage,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "properties": {
                "phase": {"type": "string"},
                "conditions": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "required": ["type"], "properties": {
                        "type": {"type": "string"}, "status": {"type": "string"},
                    }},
                },
            }},
        }}},
    })
}

#[tokio::test(start_paused = true)]
async fn the_generation_increases_with_spec_changes_and_deletion_only() {
    let cluster = Cluster::new();
    let mut object = deployment("a");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object["metadata"]["generation"] = 40.into();
    let path = format!("{DEPLOYMENTS}/a");
    let created = cluster.ok("POST", DEPLOYMENTS, object).await;
    assert_eq!(created["metadata"]["generation"], 1, "the server sets the generation");

    let (_, labelled) = cluster.patch(&path, json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert_eq!(labelled["metadata"]["generation"], 1);
    let (_, received) = cluster.patch(&format!("{path}/status"), json!({"status": {"replicas": 1}})).await;
    assert_eq!(received["metadata"]["generation"], 1);
    let (_, changed) = cluster.patch(&path, json!({"spec": {"replicas": 2}})).await;
    assert_eq!(changed["metadata"]["generation"], 2);
    cluster.ok("DELETE", &path, Value::Null).await;
    let (_, ending) = cluster.get(&path).await;
    assert_eq!(ending["metadata"]["generation"], 3);
}

#[tokio::test(start_paused = true)]
async fn spec_and_status_are_written_separately() {
    let cluster = Cluster::new();
    let created = cluster.ok("POST", DEPLOYMENTS, deployment("a")).await;
    assert_eq!(created["status"], json!({}), "a create has no status");
    let path = format!("{DEPLOYMENTS}/a");

    let mut both = created;
    both["spec"]["replicas"] = 5.into();
    both["status"] = json!({"replicas": 5, "observedGeneration": 1});
    let through_status = cluster.ok("PUT", &format!("{path}/status"), both.clone()).await;
    assert_eq!(through_status["spec"]["replicas"], 1, "the status path leaves the spec alone");
    assert_eq!(through_status["status"]["replicas"], 5);

    both["metadata"]["resourceVersion"] = through_status["metadata"]["resourceVersion"].clone();
    both["status"] = json!({"replicas": 9});
    let through_main = cluster.ok("PUT", &path, both).await;
    assert_eq!(through_main["spec"]["replicas"], 5);
    assert_eq!(through_main["status"]["replicas"], 5, "the main path leaves the status alone");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_takes_changes_but_no_new_finalizers() {
    let cluster = Cluster::new();
    let path = format!("{MAPS}/a");
    let object = json!({"metadata": {"name": "a", "finalizers": ["example.com/one", "example.com/two"]}});
    let created = cluster.ok("POST", MAPS, object).await;
    let mut watch = cluster.watch(&format!("{MAPS}?watch=true&resourceVersion={}", version(&created))).await;

    let reply = cluster.ok("DELETE", &path, Value::Null).await;
    assert_eq!(reply["kind"], "ConfigMap", "a marked object is returned instead of a status");
    assert!(reply["metadata"]["deletionTimestamp"].is_string());
    assert!(version(&reply) > version(&created));
    let again = cluster.ok("DELETE", &path, Value::Null).await;
    assert_eq!(version(&again), version(&reply), "a second delete changes nothing");

    let (code, refused) = cluster
        .patch(
            &path,
            json!({"metadata": {"finalizers": ["example.com/one", "example.com/two", "example.com/new"]}}),
        )
        .await;
    assert_eq!((code, &refused["details"]["causes"][0]["field"]), (422, &json!("metadata.finalizers")));
    let (code, changed) = cluster.patch(&path, json!({"data": {"k": "v"}})).await;
    assert_eq!((code, &changed["data"]["k"]), (200, &json!("v")));
    let (code, kept) = cluster.patch(&path, json!({"metadata": {"deletionTimestamp": null}})).await;
    assert_eq!(code, 200);
    assert_eq!(kept["metadata"]["deletionTimestamp"], reply["metadata"]["deletionTimestamp"]);

    cluster.patch(&path, json!({"metadata": {"finalizers": ["example.com/two"]}})).await;
    let (code, last) = cluster.patch(&path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(code, 200, "{last}");
    assert_eq!(cluster.get(&path).await.0, 404);
    let mut events = Vec::new();
    for _ in 0..4 {
        events.push(watch.next().await.unwrap().0);
    }
    assert_eq!(events, ["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_returns_the_object_and_its_event_has_a_new_version() {
    let cluster = Cluster::new();
    let created = cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    let mut watch = cluster.watch(&format!("{MAPS}?watch=true&resourceVersion={}", version(&created))).await;
    let status = cluster.ok("DELETE", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"]["uid"], created["metadata"]["uid"]);
    let (frame, gone) = watch.next().await.unwrap();
    assert_eq!(frame, "DELETED");
    assert_eq!(gone["metadata"]["uid"], created["metadata"]["uid"]);
    assert!(version(&gone) > version(&created), "a watch can be resumed from behind the deletion");
}

#[tokio::test(start_paused = true)]
async fn preconditions_of_a_delete_are_enforced() {
    let cluster = Cluster::new();
    let path = format!("{MAPS}/a");
    let created = cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let (code, status) = cluster.call("DELETE", &path, json!({"preconditions": wrong})).await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    }
    let right = json!({"preconditions": {
        "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"],
    }});
    assert_eq!(cluster.call("DELETE", &path, right).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_receives_a_bookmark_every_minute() {
    let cluster = Cluster::new();
    let mut watch =
        cluster.watch(&format!("{MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=200")).await;
    let mut received = Vec::new();
    let clock = TokioClock::new();
    let began = clock.now();
    let mut last = began;
    while let Some((frame, object)) = watch.next().await {
        assert_eq!(frame, "BOOKMARK");
        let quiet = clock.now().saturating_sub(last);
        assert!(quiet <= Duration::from_mins(1), "{quiet:?} without a word");
        last = clock.now();
        received.push(version(&object));
        // A write outside the scope of the watch sends no event, but the watch can resume after it.
        let name = format!("p-{}", received.len());
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        cluster.ok("POST", PODS, pod).await;
    }
    let whole = clock.now().saturating_sub(began);
    assert_eq!(whole, Duration::from_secs(200), "the watch ends at its timeout");
    assert!(received.len() >= 3 && received.is_sorted_by(|one, next| one < next), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_can_be_selected_by_name() {
    let cluster = Cluster::new();
    let mut checked = 0;
    let (_, groups) = cluster.get("/apis").await;
    let mut roots = vec!["/api/v1".to_owned()];
    for group in groups["groups"].as_array().unwrap() {
        for known in group["versions"].as_array().unwrap() {
            roots.push(format!("/apis/{}", known["groupVersion"].as_str().unwrap()));
        }
    }
    for root in roots {
        let (_, resources) = cluster.get(&root).await;
        for resource in resources["resources"].as_array().unwrap() {
            let can_list = resource["verbs"].as_array().unwrap().contains(&json!("list"));
            let name = resource["name"].as_str().unwrap();
            if !can_list || name.contains('/') {
                continue;
            }
            for (selector, expected) in [("metadata.name%3Dnone", 200), ("spec.no.such%3Dfield", 400)] {
                let (code, reply) = cluster.get(&format!("{root}/{name}?fieldSelector={selector}")).await;
                assert_eq!(code, expected, "{root}/{name}: {reply}");
            }
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} kinds");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_to_one_node_once() {
    let cluster = Cluster::new();
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let created = cluster.ok("POST", PODS, pod).await;
    let binding = |node: &str| json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": node}});
    let path = format!("{PODS}/a/binding");
    let reply = cluster.ok("POST", &path, binding("n-1")).await;
    assert_eq!((&reply["kind"], &reply["status"]), (&json!("Status"), &json!("Success")));
    let (_, bound) = cluster.get(&format!("{PODS}/a")).await;
    assert_eq!(bound["spec"]["nodeName"], "n-1");
    let scheduled = &bound["status"]["conditions"][0];
    assert_eq!((&scheduled["type"], &scheduled["status"]), (&json!("PodScheduled"), &json!("True")));
    assert!(version(&bound) > version(&created));

    let (code, again) = cluster.call("POST", &path, binding("n-2")).await;
    assert_eq!((code, &again["reason"]), (409, &json!("Conflict")));
    let on_node = cluster.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn-1").await.1;
    assert_eq!(on_node["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_account_gets_expiring_tokens() {
    let cluster = Cluster::new();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = cluster.ok("POST", accounts, json!({"metadata": {"name": "robot"}})).await;
    let path = format!("{accounts}/robot/token");
    let body = json!({"spec": {"audiences": ["a"], "expirationSeconds": 600}});
    let token = cluster.ok("POST", &path, body).await;
    assert_eq!(token["kind"], "TokenRequest");
    assert_eq!(token["status"]["token"].as_str().unwrap().split('.').count(), 3);
    assert!(token["status"]["expirationTimestamp"].is_string());
    let short = json!({"spec": {"expirationSeconds": 5}});
    let (code, status) = cluster.call("POST", &path, short).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.expirationSeconds")));
    let after = cluster.get(&format!("{accounts}/robot")).await.1;
    assert_eq!(version(&after), version(&account), "requesting one event changes nothing");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_equal_in_both_groups_and_expires_after_an_hour() {
    let cluster = Cluster::new();
    let core = "/api/v1/namespaces/default/events";
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({
        "metadata": {"name": "e.1"}, "reason": "Started", "message": "the pod is running", "type": "Normal", "count": 1,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "u"},
        "source": {"component": "kubelet"}, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    let created = cluster.ok("POST", core, event).await;
    let (_, received) = cluster.get(&format!("{new}/e.1")).await;
    assert_eq!(
        (&received["note"], &received["regarding"]["name"]),
        (&json!("the pod is running"), &json!("a"))
    );
    assert_eq!(version(&received), version(&created), "there is one object");
    let by_pod = format!("{core}?fieldSelector=involvedObject.name%3Da,involvedObject.uid%3Du");
    assert_eq!(cluster.get(&by_pod).await.1["items"].as_array().unwrap().len(), 1);

    tokio::time::advance(Duration::from_mins(50)).await;
    let (_, counted) = cluster.patch(&format!("{core}/e.1"), json!({"count": 2})).await;
    assert_eq!(counted["count"], 2);
    let mut watch = cluster.watch(&format!("{core}?watch=true&resourceVersion={}", version(&counted))).await;
    tokio::time::advance(Duration::from_mins(50)).await;
    assert_eq!(cluster.get(&format!("{core}/e.1")).await.0, 200, "an hour after its last write");
    tokio::time::advance(Duration::from_mins(11)).await;
    assert_eq!(cluster.get(&format!("{new}/e.1")).await.0, 404);
    assert_eq!(watch.next().await.unwrap().0, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_custom_object_is_applied_by_several_managers() {
    let cluster = Cluster::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.ok("POST", definitions, definition(&open_version("v1", true, true))).await;
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    let foo =
        json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"n": 1}});
    cluster.ok("POST", foos, foo).await;
    let apply = async |manager: &str, status: Value| {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"n": 9}, "status": status});
        let path = format!("{foos}/a/status?fieldManager={manager}");
        read(cluster.send_as("PATCH", &path, "application/apply-patch+yaml", &body).await).await
    };
    let (code, one) =
        apply("one", json!({"phase": "Up", "conditions": [{"type": "A", "status": "True"}]})).await;
    assert_eq!(code, 200, "{one}");
    assert_eq!(one["spec"]["n"], 1, "only the status is applied");
    let (_, two) = apply("two", json!({"conditions": [{"type": "B", "status": "False"}]})).await;
    assert_eq!(two["status"]["conditions"].as_array().unwrap().len(), 2);
    let managers: Vec<&Value> = two["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["subresource"] == "status" && entry["operation"] == "Apply")
        .map(|entry| &entry["manager"])
        .collect();
    assert_eq!(managers, ["one", "two"]);

    let (code, conflict) = apply("two", json!({"phase": "Down"})).await;
    assert_eq!((code, &conflict["details"]["causes"][0]["field"]), (409, &json!(".status.phase")));
    let (_, less) = apply("one", json!({"phase": "Up"})).await;
    assert_eq!(
        less["status"]["conditions"],
        json!([{"type": "B", "status": "False"}]),
        "fields no longer applied are removed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_custom_object_of_another_version_is_rejected_with_its_unknown_fields() {
    let cluster = Cluster::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.ok("POST", definitions, definition(&open_version("v1", true, true))).await;
    let foo = json!({"apiVersion": "example.com/v2", "kind": "Foo", "metadata": {"name": "a"}, "spec": {}});
    let response = cluster.send("POST", "/apis/example.com/v1/namespaces/default/foos", &foo).await;
    assert_eq!(response.status(), 400);
    assert_eq!(response.headers()["warning"], "299 - \"unknown field \\\"spec\\\"\"");
}

#[tokio::test(start_paused = true)]
async fn objects_of_an_unserved_kind_are_deleted_with_their_definition() {
    let cluster = Cluster::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = format!("{definitions}/foos.example.com");
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    cluster.ok("POST", definitions, definition(&open_version("v1", true, true))).await;
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}});
    cluster.ok("POST", foos, foo).await;

    let unserved = json!({"spec": {"versions": [open_version("v1", false, true)]}});
    let (code, hidden) = cluster.patch(&path, unserved).await;
    assert_eq!(code, 200, "{hidden}");
    assert_eq!(cluster.get(&format!("{foos}/a")).await.0, 404);
    assert_eq!(cluster.get("/apis/example.com").await.0, 404, "the group is no longer discovered");

    cluster.ok("DELETE", &path, Value::Null).await;
    // The server finishes the deletion of a definition in the background, while the test yields.
    for _ in 0..100 {
        tokio::time::advance(Duration::from_secs(1)).await;
        if cluster.get(&path).await.0 == 404 {
            break;
        }
    }
    assert_eq!(cluster.get(&path).await.0, 404, "{}", cluster.get(&path).await.1);
    cluster.ok("POST", definitions, definition(&open_version("v1", true, true))).await;
    let (_, list) = cluster.get(foos).await;
    assert_eq!(list["items"], json!([]), "the earlier objects were deleted");
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_and_open_watches_are_gauged() {
    let cluster = Cluster::new();
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    cluster.get(&format!("{MAPS}/none")).await;
    cluster.get("/no/such/path").await;
    let watch = cluster.watch(&format!("{MAPS}?watch=true")).await;
    let metrics = async || cluster.get("/metrics").await.1.as_str().unwrap().to_owned();
    let text = metrics().await;
    let has = |text: &str, name: &str, labels: &[&str], value: &str| {
        text.lines().any(|line| {
            line.starts_with(name)
                && labels.iter().all(|label| line.contains(label))
                && line.ends_with(&format!(" {value}"))
        })
    };
    let posted = ["verb=\"POST\"", "resource=\"configmaps\"", "scope=\"namespace\"", "code=\"201\""];
    assert!(has(&text, "apiserver_request_total", &posted, "1"), "{text}");
    let missed = ["verb=\"GET\"", "resource=\"configmaps\"", "scope=\"resource\"", "code=\"404\""];
    assert!(has(&text, "apiserver_request_total", &missed, "1"), "{text}");
    assert!(!text.contains("such"), "unserved paths are not label values: {text}");
    assert!(has(&text, "apiserver_storage_objects", &["resource=\"configmaps\""], "1"), "{text}");
    assert!(has(&text, "apiserver_current_inflight_requests", &["readOnly"], "1"), "{text}");
    let watches = ["verb=\"WATCH\"", "resource=\"configmaps\""];
    assert!(has(&text, "apiserver_longrunning_requests", &watches, "1"), "{text}");
    drop(watch);
    assert!(has(&metrics().await, "apiserver_longrunning_requests", &watches, "0"));
}
