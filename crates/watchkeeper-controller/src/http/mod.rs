//! The endpoints of a controller program: whether it lives, whether it is ready, what it counts.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz`, `/livez` | 200 while the process works; checks of your own can be added |
//! | `/readyz` | 200 once caches are warm, on a replica that waits to lead too; 503 before, and while it stops |
//! | `/healthz/NAME`, `/readyz/NAME` | one check |
//! | `/metrics` | every metric, as `OpenMetrics` text |
//!
//! `?verbose` lists the checks, `?exclude=NAME` leaves one out. Why a check fails is in the log and not in the answer, which
//! anybody who reaches the port can read.
//!
//! Programs that use [`ManagerArgs`](crate::options) serve health probes on `:8081`, because the kubelet probes the address of the pod, and
//! metrics on `127.0.0.1:8080`, because `/metrics` has no authentication. `--metrics-bind-address=:8080` lets Prometheus scrape the pod;
//! `0` turns either off. `:PORT` is every interface, IPv4 and IPv6.
//!
//! The servers speak plain HTTP/1.1, answer GET and HEAD, and are bounded: so many connections at a time, so much header, so long.

mod checks;
mod server;

pub use checks::{CheckResult, Checks};
pub use server::{Endpoint, EndpointError, Handler};

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use prometheus_client::registry::Registry;

/// What the endpoints of a program serve.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    pub(crate) health: Arc<Checks>,
    pub(crate) readiness: Arc<Checks>,
    pub(crate) registry: Arc<Registry>,
}

/// Which of the pages one address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) has_health: bool,
    pub(crate) has_metrics: bool,
}

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Pages {
    /// The handler of one address.
    pub(crate) fn handler(&self, served: Served) -> Handler {
        let pages = self.clone();
        Arc::new(move |request| pages.answer(served, request))
    }

    fn answer(&self, served: Served, request: &Request<()>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
            refusal.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
            return refusal;
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
            Ok(()) => respond(StatusCode::OK, OPEN_METRICS, body),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "a metric could not be written\n".to_owned()),
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    respond(status, TEXT, body)
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    headers.insert("x-content-type-options", header::HeaderValue::from_static("nosniff"));
    response
}
