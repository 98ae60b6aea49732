//! Strict field validation, as seen by clients.

use http::Request;
use serde_json::Value;

use crate::support::{Cluster, read};

const DEPLOYMENT: &str = r#"{
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "my-dep"},
    "spec": {
        "unknownField": "foo", "replicas": 2, "replicas": 3,
        "selector": {"matchLabels": {"app": "nginx"}},
        "template": {
            "metadata": {"labels": {"app": "nginx"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]}
        }
    }
}"#;

async fn send(
    cluster: &Cluster,
    method: &str,
    path: &str,
    content_type: &str,
    body: &str,
) -> (u16, Vec<String>, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(body.to_owned())
        .unwrap();
    let response = cluster.send_raw(request).await;
    let warnings = response.headers().get_all("warning");
    let warnings = warnings.iter().map(|warning| warning.to_str().unwrap().to_owned()).collect();
    let (code, reply) = read(response).await;
    (code, warnings, reply)
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_of_a_built_in_kind_are_reported_in_body_order() {
    let cluster = Cluster::new();
    let path = "/apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict";
    let (code, _, reply) = send(&cluster, "POST", path, "application/json", DEPLOYMENT).await;
    assert_eq!(code, 400);
    let expected =
        r#"strict decoding error: unknown field "spec.unknownField", duplicate field "spec.replicas""#;
    assert!(reply["message"].as_str().unwrap().contains(expected), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn duplicate_yaml_keys_are_reported_with_line_numbers() {
    let cluster = Cluster::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  foo: one\n  foo: two\n";
    let line = "line 7: key \"foo\" already set in map";
    for (method, path, content_type) in [
        ("POST", format!("{maps}?fieldValidation=Strict"), "application/yaml"),
        ("PATCH", format!("{maps}/a?fieldManager=m&fieldValidation=Strict"), "application/apply-patch+yaml"),
    ] {
        let (code, _, reply) = send(&cluster, method, &path, content_type, body).await;
        assert_eq!(code, 400, "{reply}");
        assert!(reply["message"].as_str().unwrap().contains(line), "{reply}");
    }
    let (code, warnings, _) = send(&cluster, "POST", maps, "application/yaml", body).await;
    assert_eq!((code, warnings), (201, vec![format!("299 - \"{}\"", line.replace('"', "\\\""))]));
}
