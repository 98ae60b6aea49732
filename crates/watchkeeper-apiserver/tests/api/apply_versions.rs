//! Server-side apply by one manager through several versions of a kind.

use serde_json::{Value, json};

use crate::support::{Cluster, DEFINITIONS, apply, foo_definition, served_version};

fn target() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"})
}

fn old(percent: i64) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": target(), "maxReplicas": 5, "minReplicas": 2, "targetCPUUtilizationPercentage": percent},
    })
}

fn new(resource: &str, percent: i64) -> Value {
    let metric = json!({
        "type": "Resource",
        "resource": {"name": resource, "target": {"type": "Utilization", "averageUtilization": percent}},
    });
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": target(), "maxReplicas": 6, "metrics": [metric]},
    })
}

#[tokio::test(start_paused = true)]
async fn one_manager_applies_an_autoscaler_in_both_versions() {
    let cluster = Cluster::new();
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/a");
    let (code, reply) = apply(&cluster, &path("v1"), &old(50)).await;
    assert_eq!(code, 201, "{reply}");
    let (code, reply) = apply(&cluster, &path("v2"), &new("cpu", 60)).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(reply["spec"]["maxReplicas"], 6);
    assert_eq!(reply["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 60, "{reply}");
    let managed = reply["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managed.len(), 1, "{managed:?}");
    assert_eq!(managed[0]["apiVersion"], "autoscaling/v2");
    let (code, reply) = apply(&cluster, &path("v2"), &new("memory", 70)).await;
    assert_eq!(code, 200, "{reply}");
    let (code, reply) = apply(&cluster, &path("v1"), &old(40)).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(reply["spec"]["targetCPUUtilizationPercentage"], 40, "{reply}");
}

fn definition() -> Value {
    let list = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {
            "k": {"type": "string"}, "v": {"type": "string"},
        }},
    });
    let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}, "list": list});
    let spec = json!({"type": "object", "properties": properties});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    foo_definition(&json!([served_version("v1", true, &schema), served_version("v2", false, &schema)]))
}

#[tokio::test(start_paused = true)]
async fn one_manager_applies_a_custom_resource_in_several_versions() {
    let cluster = Cluster::new();
    cluster.ok("POST", DEFINITIONS, definition()).await;
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/foos/x");
    let foo = |version: &str, spec: Value| json!({"apiVersion": format!("example.com/{version}"), "kind": "Foo", "metadata": {"name": "x"}, "spec": spec});
    let (code, reply) =
        apply(&cluster, &path("v1"), &foo("v1", json!({"a": "1", "b": "1", "list": [{"k": "x", "v": "1"}]})))
            .await;
    assert_eq!(code, 201, "{reply}");
    let (code, reply) =
        apply(&cluster, &path("v2"), &foo("v2", json!({"a": "2", "list": [{"k": "y"}]}))).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(reply["spec"], json!({"a": "2", "list": [{"k": "y"}]}), "{reply}");
    let managed = reply["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((managed.len(), &managed[0]["apiVersion"]), (1, &json!("example.com/v2")));
    let (code, reply) = apply(&cluster, &path("v1"), &foo("v1", json!({"b": "3"}))).await;
    assert_eq!((code, &reply["spec"]), (200, &json!({"b": "3"})), "{reply}");
}
