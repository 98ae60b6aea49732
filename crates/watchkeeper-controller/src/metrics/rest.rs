//! Metrics of requests to the API server.

use http::{Request, Response};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use tower::BoxError;
use watchkeeper_client::Client;
use watchkeeper_client::kube_client::client::Body;

use super::register;
use crate::time::Time;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    verb: String,
    host: String,
}

/// The metrics of requests to the API server, named as in client-go.
///
/// | name | kind | labels |
/// |---|---|---|
/// | `rest_client_requests_total` | counter | `code` (`<error>` without a response), `method`, `host` |
/// | `rest_client_request_duration_seconds` | histogram | `verb`, `host` |
///
/// A request ends when the head of its response arrives, so the duration of a watch is not included.
#[derive(Debug, Clone)]
#[doc(alias = "RESTClientMetric")]
pub struct RestMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
}

impl RestMetrics {
    /// Registers the metrics. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        Self {
            requests: register(
                registry,
                "rest_client_requests",
                "Requests to the API server, by status code, method and host",
                Family::default(),
            ),
            durations: register(
                registry,
                "rest_client_request_duration_seconds",
                "Time from sending a request to the head of its response, by verb and host",
                Family::new_with_constructor(buckets),
            ),
        }
    }

    /// Returns a client whose requests are counted. The `host` label is the configured host of the client, or
    /// `in-process`.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, as [`watchkeeper_client::kube_client::Client::new`] does.
    pub fn count(&self, client: &Client, time: &Time) -> Client {
        let kube = client.transport().clone();
        let namespace = kube.default_namespace().to_owned();
        let host = client.host().unwrap_or("in-process").to_owned();
        let (metrics, time) = (self.clone(), time.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (kube, metrics, time, host) = (kube.clone(), metrics.clone(), time.clone(), host.clone());
            async move { metrics.send(&kube, &time, host, request).await }
        });
        client.clone().with_transport(watchkeeper_client::kube_client::Client::new(service, namespace))
    }

    async fn send(
        &self,
        kube: &watchkeeper_client::kube_client::Client,
        time: &Time,
        host: String,
        request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let (method, sent_at) = (request.method().as_str().to_owned(), time.now());
        let result = kube.send(request).await;
        let took = time.now().saturating_sub(sent_at);
        let code = match &result {
            Ok(response) => response.status().as_str().to_owned(),
            Err(_) => "<error>".to_owned(),
        };
        let labels = DurationLabels { verb: method.clone(), host: host.clone() };
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { code, method, host }).inc();
        Ok(result?)
    }
}

/// Returns a histogram with client-go's buckets, from 5 ms to 60 s.
fn buckets() -> Histogram {
    Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0])
}
