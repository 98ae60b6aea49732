//! An embedded API server with direct access for tests.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;
use watchkeeper_apiserver::ApiServer;

/// An embedded API server that a test can access directly, bypassing the clients under test.
#[derive(Debug)]
pub struct Cluster {
    server: ApiServer,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl Cluster {
    /// Creates a server in which only the test writes.
    pub fn new() -> Self {
        Self { server: ApiServer::builder().seed(7).control(true).controllers(false).build() }
    }

    /// Returns the server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Sends a request directly to the server and returns the response body.
    ///
    /// # Panics
    /// Panics if the server rejects the request.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> Bytes {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .expect("a method and a path");
        let response = self.server.service().oneshot(request).await.expect("no fault is injected");
        let code = response.status();
        let body = response.into_body().collect().await.expect("no fault is injected").to_bytes();
        assert!(code.is_success(), "{method} {path}: {code} {}", String::from_utf8_lossy(&body));
        body
    }

    /// Compacts the history: a watch that resumes from an earlier version receives a 410.
    pub async fn compact(&self) {
        self.send("POST", "/-/control", r#"{"action":"compact"}"#).await;
    }
}
