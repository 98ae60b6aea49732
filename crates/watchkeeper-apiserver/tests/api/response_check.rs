//! Checks that apply to every response.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;
use watchkeeper_apiserver::ApiServer;

/// Sends `request` and checks the response. Returns the status code.
///
/// # Panics
/// Panics if the response is an internal error, or if a rejection in JSON is not a `Status` with the code of the response.
pub(crate) async fn check(server: &ApiServer, request: Request<Vec<u8>>) -> u16 {
    let request_line = format!("{} {}", request.method(), request.uri());
    let response = server.service().oneshot(request.map(|body| Full::new(Bytes::from(body)))).await;
    let response = response.expect("no fault is injected");
    let code = response.status().as_u16();
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = content_type == Some("application/json");
    // A watch without a timeout ends with its server; its first second is enough.
    let body = tokio::time::timeout(Duration::from_secs(1), response.into_body().collect()).await;
    let Ok(Ok(body)) = body else { return code };
    let body = body.to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert!(!text.contains("caused the API server to panic"), "{request_line}: {text}");
    if code >= 400 && is_json {
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_status = status["kind"] == "Status"
            && status["apiVersion"] == "v1"
            && status["status"] == "Failure"
            && status["code"] == code
            && status["message"].is_string();
        assert!(is_status, "{request_line}: {code} with {text}");
    } else if code < 400 && is_json && !body.is_empty() {
        // A list or an object is one value; a watch is a sequence of values.
        let values = serde_json::Deserializer::from_slice(&body).into_iter::<Value>();
        assert!(values.into_iter().all(|value| value.is_ok()), "{request_line}: {code} with {text}");
    }
    code
}
