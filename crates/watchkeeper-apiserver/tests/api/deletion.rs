//! Responses to deletions and evictions, and the resulting watch events.

use serde_json::{Value, json};

use crate::support::{Cluster, read, version};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}]},
    })
}

async fn run(cluster: &Cluster, name: &str) {
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let (code, reply) = cluster.patch(&format!("{PODS}/{name}/status"), status).await;
    assert_eq!(code, 200, "{reply}");
}

async fn evict(cluster: &Cluster, name: &str, query: &str, options: Value) -> (u16, Value) {
    let mut body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    if !options.is_null() {
        body["deleteOptions"] = options;
    }
    cluster.call("POST", &format!("{PODS}/{name}/eviction{query}"), body).await
}

#[tokio::test(start_paused = true)]
async fn deleting_a_pod_without_grace_sends_modified_then_deleted() {
    for (node, options) in [("", Value::Null), ("n", json!({"gracePeriodSeconds": 0}))] {
        let cluster = Cluster::new();
        let created = cluster.ok("POST", PODS, pod("a", node)).await;
        let from = version(&created);
        let mut watch = cluster.watch(&format!("{PODS}?watch=true&resourceVersion={from}")).await;
        let reply = cluster.ok("DELETE", &format!("{PODS}/a"), options).await;
        let (kind, marked) = watch.next().await.unwrap();
        assert_eq!(kind, "MODIFIED");
        assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
        assert_eq!(marked["metadata"]["generation"], 2);
        let (kind, gone) = watch.next().await.unwrap();
        assert_eq!(kind, "DELETED");
        assert_eq!((version(&marked), version(&gone)), (from + 1, from + 2));
        assert_eq!(reply, gone, "the reply is the last state of the object");
    }
}

#[tokio::test(start_paused = true)]
async fn a_negative_grace_period_is_replaced_by_one_second() {
    let cluster = Cluster::new();
    cluster.ok("POST", PODS, pod("a", "n")).await;
    let reply = cluster.ok("DELETE", &format!("{PODS}/a"), json!({"gracePeriodSeconds": -1})).await;
    assert_eq!(reply["metadata"]["deletionGracePeriodSeconds"], 1);
    assert_eq!(cluster.get(&format!("{PODS}/a")).await.0, 200);
    // A pod on a node keeps the requested period, even if its own is zero.
    let mut instant = pod("b", "n");
    instant["spec"]["terminationGracePeriodSeconds"] = 0.into();
    cluster.ok("POST", PODS, instant).await;
    let reply = cluster.ok("DELETE", &format!("{PODS}/b"), json!({"gracePeriodSeconds": 9})).await;
    assert_eq!(reply["metadata"]["deletionGracePeriodSeconds"], 9);
}

#[tokio::test(start_paused = true)]
async fn deletion_without_grace_replies_with_the_deletion_version_and_no_deletion_timestamp() {
    let cluster = Cluster::new();
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    for (collection, mut body) in [
        ("/api/v1/namespaces/default/services", json!({"spec": {"ports": [{"port": 80}]}})),
        ("/api/v1/namespaces/default/serviceaccounts", json!({})),
        ("/api/v1/namespaces/default/resourcequotas", json!({"spec": {"hard": {"pods": "1"}}})),
        ("/api/v1/namespaces/default/podtemplates", json!({"template": template})),
        ("/apis/storage.k8s.io/v1/storageclasses", json!({"provisioner": "p"})),
        ("/api/v1/namespaces/default/persistentvolumeclaims", json!({"spec": claim})),
    ] {
        body["metadata"]["name"] = "a".into();
        let created = cluster.ok("POST", collection, body).await;
        let path = format!("{collection}/a");
        if !created["metadata"]["finalizers"].is_null() {
            cluster.patch(&path, json!({"metadata": {"finalizers": null}})).await;
        }
        let (_, before) = cluster.get(&path).await;
        let dry = cluster.ok("DELETE", &format!("{path}?dryRun=All"), Value::Null).await;
        assert_eq!(dry, before, "a dry run changes nothing");
        let mut reply = cluster.ok("DELETE", &path, Value::Null).await;
        assert!(version(&reply) > version(&before), "{path}");
        reply["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        assert_eq!(reply, before, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_deleted_immediately_under_every_propagation_policy() {
    let cluster = Cluster::new();
    let path = "/api/v1/namespaces/default/events";
    let event = json!({
        "metadata": {"name": "e", "namespace": "default"}, "reason": "r", "message": "m",
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
    });
    for policy in ["Orphan", "Foreground"] {
        cluster.ok("POST", path, event.clone()).await;
        let reply = cluster.ok("DELETE", &format!("{path}/e"), json!({"propagationPolicy": policy})).await;
        assert_eq!(reply["status"], "Success", "{reply}");
        assert_eq!(cluster.get(&format!("{path}/e")).await.0, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_collection_of_jobs_warns_about_their_pods() {
    let cluster = Cluster::new();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let response = cluster.send("DELETE", jobs, &Value::Null).await;
    let warning = response.headers().get("warning").unwrap().to_str().unwrap();
    assert!(warning.contains("child pods are preserved by default"), "{warning}");
    let response = cluster.send("DELETE", jobs, &json!({"propagationPolicy": "Background"})).await;
    assert!(response.headers().get("warning").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_eviction_marks_the_pod_before_it_is_deleted() {
    let cluster = Cluster::new();
    cluster.ok("POST", PODS, pod("a", "n")).await;
    run(&cluster, "a").await;
    let (_, before) = cluster.get(&format!("{PODS}/a")).await;
    let mut watch = cluster.watch(&format!("{PODS}?watch=true&resourceVersion={}", version(&before))).await;
    assert_eq!(evict(&cluster, "a", "?dryRun=All", Value::Null).await.0, 201);
    assert_eq!(evict(&cluster, "a", "", json!({"gracePeriodSeconds": 0})).await.0, 201);
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(watch.next().await.unwrap());
    }
    let target = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|known| known["type"] == "DisruptionTarget").cloned().unwrap_or_default()
    };
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["MODIFIED", "MODIFIED", "DELETED"]);
    let condition = target(&events[0].1);
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "EvictionByEvictionAPI");
    assert!(events[0].1["metadata"]["deletionTimestamp"].is_null());
    assert!(events[1].1["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test(start_paused = true)]
async fn the_last_allowed_disruption_is_counted_and_reported_in_the_status() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.ok("POST", PODS, pod(name, "n")).await;
        run(&cluster, name).await;
    }
    let budget = |name: &str| json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    cluster.ok("POST", BUDGETS, budget("b")).await;
    let (code, reply) = evict(&cluster, "a", "", Value::Null).await;
    assert_eq!(
        (code, &reply["details"]["retryAfterSeconds"]),
        (429, &json!(10)),
        "not observed yet: {reply}"
    );
    let status = json!({"status": {
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    }});
    cluster.patch(&format!("{BUDGETS}/b/status"), status).await;
    assert_eq!(evict(&cluster, "a", "?dryRun=All", Value::Null).await.0, 201);
    assert_eq!(evict(&cluster, "a", "", Value::Null).await.0, 201);
    let (_, counted) = cluster.get(&format!("{BUDGETS}/b")).await;
    assert_eq!(counted["status"]["disruptionsAllowed"], 0, "{counted}");
    assert!(counted["status"]["disruptedPods"]["a"].is_string());
    assert_eq!(counted["status"]["conditions"][0]["reason"], "InsufficientPods");
    let managers = counted["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| entry["manager"] == "kube-apiserver"), "{managers:?}");
    assert_eq!(evict(&cluster, "b", "", Value::Null).await.0, 429);

    cluster.patch(&format!("{BUDGETS}/b/status"), json!({"status": {"disruptionsAllowed": -1}})).await;
    // A second budget for the same pod: the response is a failure with a success code.
    cluster.ok("POST", BUDGETS, budget("c")).await;
    let (code, reply) = evict(&cluster, "b", "", Value::Null).await;
    assert_eq!((code, &reply["status"], &reply["code"]), (201, &json!("Failure"), &json!(500)), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_keeps_the_preconditions_of_its_deletion() {
    let cluster = Cluster::new();
    cluster.ok("POST", PODS, pod("a", "n")).await;
    let (_, before) = cluster.get(&format!("{PODS}/a")).await;
    for preconditions in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let (code, reply) = evict(&cluster, "a", "", json!({"preconditions": preconditions})).await;
        assert_eq!((code, &reply["reason"]), (409, &json!("Conflict")), "{reply}");
    }
    let same = json!({"preconditions": {"resourceVersion": before["metadata"]["resourceVersion"]}});
    let (code, reply) = evict(&cluster, "a", "", same).await;
    assert_eq!(code, 201, "the deletion mark does not violate the precondition: {reply}");
    let response = cluster.send("GET", &format!("{PODS}/a"), &Value::Null).await;
    let (_, after) = read(response).await;
    assert_eq!(after["metadata"]["deletionGracePeriodSeconds"], 30);
}
