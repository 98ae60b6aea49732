//! Requests to an in-process server, as text and JSON.

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, ResponseBody};

/// A server for tests.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
}

/// The path of custom resource definitions.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Cluster {
    pub(crate) fn new() -> Self {
        // Without controllers, only the test writes.
        Self { server: ApiServer::builder().seed(7).control(true).controllers(false).build() }
    }

    /// Sends a request. A body of `null` means no body.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Response<ResponseBody> {
        self.send_as(method, path, "application/json", body).await
    }

    pub(crate) async fn send_as(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Response<ResponseBody> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "test/1")
            .body(body)
            .unwrap();
        self.send_raw(request).await
    }

    /// Sends a request unchanged.
    pub(crate) async fn send_raw(&self, request: Request<String>) -> Response<ResponseBody> {
        self.server.service().oneshot(request).await.unwrap()
    }

    /// Sends a request and returns the status code and the body.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        read(self.send(method, path, &body).await).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        read(self.send_as("PATCH", path, "application/merge-patch+json", &body).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, Value::Null).await
    }

    /// Sends a request that must succeed and returns the body.
    pub(crate) async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, reply) = self.call(method, path, body).await;
        assert!(StatusCode::from_u16(code).unwrap().is_success(), "{method} {path}: {reply}");
        reply
    }

    /// Starts a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.send("GET", path, &Value::Null).await;
        assert_eq!(response.status(), 200);
        Watch { body: response.into_body() }
    }
}

pub(crate) struct Watch {
    pub(crate) body: ResponseBody,
}

impl Watch {
    /// Returns the type and the object of the next frame. None when the watch is over.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        let frame = self.body.frame().await?.unwrap().into_data().unwrap();
        let mut frame: Value = serde_json::from_slice(&frame).unwrap();
        Some((frame["type"].as_str().unwrap().to_owned(), frame["object"].take()))
    }
}

/// Returns a definition of the kind `Foo` of `example.com` with these versions.
pub(crate) fn foo_definition(versions: &Value) -> Value {
    json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": versions,
        },
    })
}

/// Returns a served version of a definition, with a schema.
pub(crate) fn served_version(name: &str, is_storage: bool, schema: &Value) -> Value {
    json!({"name": name, "served": true, "storage": is_storage, "schema": {"openAPIV3Schema": schema}})
}

/// Returns a deployment with one replica.
pub(crate) fn small_deployment(name: &str) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    });
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Applies `body` as the manager `m`.
pub(crate) async fn apply(cluster: &Cluster, path: &str, body: &Value) -> (u16, Value) {
    let path = format!("{path}?fieldManager=m");
    read(cluster.send_as("PATCH", &path, "application/apply-patch+yaml", body).await).await
}

/// Sends a GET with an `Accept` header.
pub(crate) async fn get_as(cluster: &Cluster, path: &str, accept: &str) -> Response<ResponseBody> {
    let request = Request::get(path).header("accept", accept).body(String::new()).unwrap();
    cluster.send_raw(request).await
}

pub(crate) async fn read(response: Response<ResponseBody>) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::String(text)))
}

pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
