//! Values of custom resources: nulls, and versions with different members.

use serde_json::{Value, json};

use crate::support::{Cluster, DEFINITIONS, apply, foo_definition, served_version};

async fn cluster(versions: &Value) -> Cluster {
    let cluster = Cluster::new();
    cluster.ok("POST", DEFINITIONS, foo_definition(versions)).await;
    cluster
}

fn one(name: &str, is_storage: bool, properties: &Value) -> Value {
    let spec = json!({"type": "object", "properties": properties});
    served_version(name, is_storage, &json!({"type": "object", "properties": {"spec": spec}}))
}

fn foo(version: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Foo", "metadata": {"name": name}, "spec": spec})
}

fn path(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/foos")
}

async fn apply_foo(cluster: &Cluster, body: &Value) -> (u16, Value) {
    let name = body["metadata"]["name"].as_str().unwrap();
    apply(cluster, &format!("{}/{name}", path("v1")), body).await
}

#[tokio::test(start_paused = true)]
async fn nulls_that_are_not_allowed_are_dropped_everywhere_but_from_applies() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let properties = json!({"a": {"type": "string"}, "d": {"type": "string", "default": "x"}, "map": map});
    let cluster = cluster(&json!([one("v1", true, &properties)])).await;
    let spec = json!({"a": null, "d": null, "map": {"k": null, "l": "1"}});
    let (code, created) = cluster.call("POST", &path("v1"), foo("v1", "a", &spec)).await;
    assert_eq!((code, &created["spec"]), (201, &json!({"d": "x", "map": {"l": "1"}})), "{created}");

    for spec in [json!({"a": null}), json!({"map": {"k": null}})] {
        let (code, reply) = apply_foo(&cluster, &foo("v1", "b", &spec)).await;
        assert_eq!((code, &reply["reason"]), (422, &json!("Invalid")), "{reply}");
    }
    let (code, applied) = apply_foo(&cluster, &foo("v1", "b", &json!({"d": null}))).await;
    assert_eq!((code, &applied["spec"]), (201, &json!({"d": "x"})), "{applied}");
}

#[tokio::test(start_paused = true)]
async fn nulls_that_are_allowed_are_kept_and_managed() {
    let properties = json!({"a": {"type": "string", "nullable": true}, "b": {"type": "string"}});
    let cluster = cluster(&json!([one("v1", true, &properties)])).await;
    let created = cluster.ok("POST", &path("v1"), foo("v1", "a", &json!({"a": null, "b": "x"}))).await;
    assert_eq!(created["spec"], json!({"a": null, "b": "x"}));
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*fields, json!({"f:spec": {".": {}, "f:a": {}, "f:b": {}}}));
    let (code, applied) = apply_foo(&cluster, &foo("v1", "b", &json!({"a": null}))).await;
    assert_eq!((code, &applied["spec"]), (201, &json!({"a": null})), "{applied}");
    assert_eq!(
        applied["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:a": {}}}),
        "{applied}"
    );
}

#[tokio::test(start_paused = true)]
async fn errors_of_metadata_are_reported_once() {
    let cluster = cluster(&json!([one("v1", true, &json!({}))])).await;
    let mut object = foo("v1", "Not_A_Name", &json!({}));
    let fields = |reply: &Value| -> Vec<String> {
        let causes = reply["details"]["causes"].as_array().unwrap();
        causes.iter().map(|cause| cause["field"].as_str().unwrap().to_owned()).collect()
    };
    let (code, reply) = cluster.call("POST", &path("v1"), object.clone()).await;
    assert_eq!((code, fields(&reply)), (422, vec!["metadata.name".to_owned()]), "{reply}");
    object["metadata"] = json!({"name": "a", "labels": {"a b": "c"}});
    let (code, reply) = cluster.call("POST", &path("v1"), object).await;
    assert_eq!((code, fields(&reply)), (422, vec!["metadata.labels".to_owned()]), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_pruned_and_defaulted_by_the_storage_version() {
    let text = json!({"type": "string"});
    let default = |value: &str| json!({"type": "string", "default": value});
    let old = json!({"shared": text, "old": default("o"), "both": default("1")});
    let new = json!({"shared": text, "new": text, "both": default("2"), "added": default("a")});
    let cluster = cluster(&json!([one("v1", true, &old), one("v2", false, &new)])).await;
    let spec = json!({"shared": "s", "new": "n"});
    let dry = cluster.ok("POST", &format!("{}?dryRun=All", path("v2")), foo("v2", "a", &spec)).await;
    let created = cluster.ok("POST", &path("v2"), foo("v2", "a", &spec)).await;
    for shown in [&dry, &created] {
        assert_eq!(shown["apiVersion"], "example.com/v2");
        assert_eq!(shown["spec"], json!({"shared": "s", "both": "2"}), "{shown}");
    }
    let (_, read) = cluster.get(&format!("{}/a", path("v2"))).await;
    assert_eq!(read, created);
    let (_, stored) = cluster.get(&format!("{}/a", path("v1"))).await;
    assert_eq!(stored["spec"], json!({"shared": "s", "old": "o", "both": "2"}));
}
