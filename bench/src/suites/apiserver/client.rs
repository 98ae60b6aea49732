//! A client of the server's service, which reads responses to their end.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::Service;
use watchkeeper_apiserver::{ApiServer, ApiService, ResponseBody};

use crate::suite::RunFailure;

/// A client of a server in this process.
#[derive(Debug, Clone)]
pub(super) struct Client(ApiService);

impl Client {
    pub(super) fn of(server: &ApiServer) -> Self {
        Self(server.service())
    }

    /// Sends a request, and returns the response with its body unread.
    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response<ResponseBody>, RunFailure> {
        let content_type =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content_type)
            .header(header::USER_AGENT, "watchkeeper-bench")
            .body(Full::new(body.into()))?;
        Ok(self.0.call(request).await?)
    }

    /// Sends a request and reads its response, which must be a success.
    pub(super) async fn done(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Bytes, RunFailure> {
        let response = self.send(method, path, body).await?;
        let code = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if code.is_success() {
            Ok(body)
        } else {
            Err(format!("{path}: {code}: {}", String::from_utf8_lossy(&body)).into())
        }
    }

    /// Sends a request as [`done`](Self::done) does, and returns the response as a value.
    pub(super) async fn value(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Value, RunFailure> {
        Ok(serde_json::from_slice(&self.done(method, path, body).await?)?)
    }
}
