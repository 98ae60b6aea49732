//! An embedded API server, and what it says of itself.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, ResponseBody};

/// An embedded API server that a test can ask behind the back of the clients it tests.
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
    /// A server in which nobody writes but the test.
    pub fn new() -> Self {
        Self { server: ApiServer::builder().seed(7).control(true).controllers(false).build() }
    }

    /// The server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Sends a request past every wire; answers the body.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> Bytes {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .expect("a method and a path");
        let Ok(response): Result<Response<ResponseBody>, _> = self.server.service().oneshot(request).await;
        let code = response.status();
        let Ok(body) = response.into_body().collect().await;
        let body = body.to_bytes();
        assert!(code.is_success(), "{method} {path}: {code} {}", String::from_utf8_lossy(&body));
        body
    }

    /// Drops all history: whoever resumes from before now is told that it is gone.
    pub async fn compact(&self) {
        self.send("POST", "/-/control", r#"{"action":"compact"}"#).await;
    }
}
