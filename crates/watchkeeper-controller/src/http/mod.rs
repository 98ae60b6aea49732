//! HTTP endpoints of a controller program: health, readiness and metrics.
//!
//! | path | response |
//! |---|---|
//! | `/healthz`, `/livez` | 200 while the process works; programs can add checks |
//! | `/readyz` | 200 once caches are synced, on standby replicas too; 503 before that and during shutdown |
//! | `/healthz/NAME`, `/readyz/NAME` | one check |
//! | `/metrics` | all metrics, as `OpenMetrics` text |
//!
//! `?verbose` lists the checks, and `?exclude=NAME` omits one. The reason for a failure is logged but not
//! returned, because every client that reaches the port can read the response.
//!
//! Programs that use [`ManagerArgs`](crate::options) serve health probes on `:8081`, because the kubelet
//! probes the address of the pod, and metrics on `127.0.0.1:8080`, because `/metrics` has no authentication.
//! `--metrics-bind-address=:8080` lets Prometheus scrape the pod; `0` disables either endpoint. `:PORT` is
//! every interface, IPv4 and IPv6.
//!
//! The servers use plain HTTP/1.1, accept GET and HEAD, and limit the number of connections, the size of
//! headers and the duration of a connection.

mod checks;
mod server;

pub use checks::CheckResult;
pub(crate) use checks::Checks;
pub use server::EndpointError;
pub(crate) use server::{Endpoint, Handler};

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use prometheus_client::registry::Registry;

/// The pages that the endpoints of a program serve.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    pub(crate) health: Arc<Checks>,
    pub(crate) readiness: Arc<Checks>,
    pub(crate) registry: Arc<Registry>,
}

/// The selection of pages that one address serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) has_health: bool,
    pub(crate) has_metrics: bool,
}

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Pages {
    /// Returns the request handler of one address.
    pub(crate) fn handler(&self, served: Served) -> Handler {
        let pages = self.clone();
        Arc::new(move |request| pages.respond(served, request))
    }

    fn respond(&self, served: Served, request: &Request<()>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
            response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let (page, check) = (parts.next().unwrap_or_default(), parts.next());
        let checks = match page {
            "healthz" | "livez" if served.has_health => &self.health,
            "readyz" if served.has_health => &self.readiness,
            "metrics" if served.has_metrics && check.is_none() => return self.metrics(),
            _ => return text(StatusCode::NOT_FOUND, "no such page\n".to_owned()),
        };
        let (status, body) = checks.page(page, check, query);
        text(status, body)
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut body = String::new();
        match prometheus_client::encoding::text::encode(&mut body, &self.registry) {
            Ok(()) => response(StatusCode::OK, OPEN_METRICS, body),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be encoded\n".to_owned()),
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    response(status, TEXT, body)
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert("x-content-type-options", header::HeaderValue::from_static("nosniff"));
    response
}
