//! A session with an embedded server: requests by path and JSON body.

use std::time::Duration;

use futures_util::AsyncBufRead;
use kube_client::{Client, Error};
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

/// A server with a client.
pub(crate) struct Session {
    pub(crate) server: ApiServer,
    client: Client,
}

impl Session {
    /// Creates a session with a new server that runs all controllers.
    pub(crate) fn new() -> Self {
        Self::with(ApiServer::in_process())
    }

    /// Creates a session with `server`.
    pub(crate) fn with(server: ApiServer) -> Self {
        let client = server.client();
        Self { server, client }
    }

    /// Sends a request. Returns the response, or the code of the error.
    pub(crate) async fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, u16> {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(body.into_bytes())
            .unwrap();
        match self.client.request::<Value>(request).await {
            Ok(reply) => Ok(reply),
            Err(Error::Api(status)) => {
                // Printed if the test fails.
                println!("{method} {path}: {} {}", status.code, status.message);
                Err(status.code)
            }
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        self.request("GET", path, None).await.ok()
    }

    pub(crate) async fn create(&self, path: &str, object: Value) -> Value {
        self.request("POST", path, Some(&object)).await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, patch: Value) -> Value {
        self.request("PATCH", path, Some(&patch)).await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str, policy: &str) -> Value {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        self.request("DELETE", path, Some(&options)).await.unwrap()
    }

    /// Returns the frames of a watch as they arrive.
    pub(crate) async fn watch(&self, path: &str) -> impl AsyncBufRead {
        let request = http::Request::builder().uri(path).body(Vec::new()).unwrap();
        self.client.request_stream(request).await.unwrap()
    }

    /// Returns the names in a list.
    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        let list = self.get(path).await.unwrap();
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits on paused time until `is_right` returns true for the object at `path`.
    pub(crate) async fn until(&self, path: &str, is_right: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
        for _ in 0..5_000 {
            let found = self.get(path).await;
            if is_right(found.as_ref()) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{path} did not reach the expected state: {:#?}", self.get(path).await);
    }

    /// Waits until no object exists at `path`.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, |found| found.is_none()).await;
    }

    /// Waits on paused time until the controllers have no work left.
    pub(crate) async fn rest(&self) {
        tokio::time::sleep(Duration::from_mins(2)).await;
    }
}

/// Returns an owner reference to `owner`.
pub(crate) fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    })
}

/// Returns a config map with these owners and finalizers.
pub(crate) fn config_map(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers},
    })
}
