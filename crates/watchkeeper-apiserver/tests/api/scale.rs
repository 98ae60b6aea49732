//! Scales of built-in and custom objects: rejections and forms.

use serde_json::{Value, json};

use crate::support::{Cluster, DEFINITIONS, foo_definition, get_as, read, served_version, small_deployment};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";
const FOO: &str = "/apis/example.com/v1/namespaces/default/foos/f";

async fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.ok("POST", "/apis/apps/v1/namespaces/default/deployments", small_deployment("d")).await;
    let replicas = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": replicas, "status": replicas}});
    let mut version = served_version("v1", true, &schema);
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    cluster.ok("POST", DEFINITIONS, foo_definition(&json!([version]))).await;
    let foo = |name: &str, spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec});
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    cluster.ok("POST", foos, foo("f", json!({"replicas": 1}))).await;
    cluster.ok("POST", foos, foo("empty", json!({}))).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_patched_scale_must_be_of_its_type() {
    let cluster = cluster().await;
    for path in [DEPLOYMENT, FOO] {
        let path = format!("{path}/scale");
        for replicas in [json!("x"), json!(1.5), json!(3_000_000_000_u64), json!({}), json!(true)] {
            let (code, reply) = cluster.patch(&path, json!({"spec": {"replicas": replicas}})).await;
            assert_eq!((code, &reply["reason"]), (422, &json!("Invalid")), "{path} {replicas}: {reply}");
            assert_eq!(reply["details"]["causes"][0]["field"], "patch", "{reply}");
        }
        let (code, reply) = cluster.patch(&path, json!({"spec": {"replicas": 3}})).await;
        assert_eq!((code, &reply["spec"]["replicas"]), (200, &json!(3)), "{reply}");
        let strict = format!("{path}?fieldValidation=Strict");
        let (code, reply) = cluster.patch(&strict, json!({"spec": {"other": 3}})).await;
        assert_eq!(code, 422, "{reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_scale_name_the_invalid_field() {
    let cluster = cluster().await;
    let negative = json!({"spec": {"replicas": -1}});
    let (code, reply) = cluster.patch(&format!("{DEPLOYMENT}/scale"), negative.clone()).await;
    assert_eq!((code, &reply["details"]["kind"]), (422, &json!("Scale")), "{reply}");
    assert_eq!(reply["details"]["causes"][0]["field"], "spec.replicas", "{reply}");
    let (code, reply) = cluster.patch(&format!("{FOO}/scale"), negative).await;
    assert_eq!((code, &reply["details"]["kind"]), (422, &json!("Foo")), "{reply}");
    assert_eq!(reply["details"]["causes"][0]["field"], ".spec.replicas", "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_scale_can_set_the_replicas_of_an_object_without_replicas() {
    let cluster = cluster().await;
    let path = "/apis/example.com/v1/namespaces/default/foos/empty/scale";
    assert_eq!(cluster.get(path).await.0, 500);
    let (code, reply) = cluster.patch(path, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!((code, &reply["reason"]), (400, &json!("BadRequest")), "{reply}");
    let (code, reply) = cluster.patch(path, json!({"spec": {"replicas": 2}})).await;
    assert_eq!((code, &reply["spec"]["replicas"]), (200, &json!(2)), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_returned_in_the_requested_representation() {
    let cluster = cluster().await;
    for path in [DEPLOYMENT, FOO] {
        let path = format!("{path}/scale");
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let (code, reply) = read(get_as(&cluster, &path, table).await).await;
        assert_eq!((code, &reply["kind"]), (200, &json!("Table")), "{reply}");
        let columns: Vec<&Value> =
            reply["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
        assert_eq!(columns, ["Name", "Desired", "Available", "Age"]);
        let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let (_, reply) = read(get_as(&cluster, &path, metadata).await).await;
        assert_eq!(reply["kind"], "PartialObjectMetadata", "{reply}");
        assert!(reply.get("spec").is_none());
    }
}
