//! Request metrics, under the names that dashboards for API servers use.
//!
//! | name | kind | meaning |
//! |---|---|---|
//! | `apiserver_request_total` | counter | completed requests |
//! | `apiserver_current_inflight_requests` | gauge | requests in progress, except watches |
//! | `apiserver_longrunning_requests` | gauge | open watches |
//! | `apiserver_storage_objects` | gauge | objects, by resource |
//!
//! Label values are names of served kinds, never client input, so the number of series is bounded.

use std::fmt::Debug;

use http::Method;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::{
    kinds::{Kind, Kinds},
    rest::table_of,
    storage::Storage,
};

/// The media type of the output of [`Metrics::encode`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The labels of a request. Stored in the extensions of its response once they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
}

impl RequestLabels {
    /// Returns the labels of a request to a kind, for a collection or one object.
    pub(super) fn kind(
        verb: &'static str,
        kind: &Kind,
        subresource: &str,
        namespace: &str,
        name: &str,
    ) -> Self {
        let is_known = kind.subresource(subresource).is_some();
        Self {
            verb,
            group: kind.gvk.group.clone(),
            version: kind.gvk.version.clone(),
            resource: kind.plural.clone(),
            subresource: if is_known { subresource.to_owned() } else { String::new() },
            scope: match (name, namespace) {
                ("", "") => "cluster",
                ("", _) => "namespace",
                _ => "resource",
            },
        }
    }

    /// Returns the labels of a request to an unknown path or to a path that is not a resource.
    pub(super) fn non_resource(method: &Method) -> Self {
        let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let verbs = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
        let verb = known.iter().position(|known| known == method).and_then(|index| verbs.get(index).copied());
        Self { verb: verb.unwrap_or("other"), ..Self::default() }
    }
}

/// The labels of a completed request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CompletedLabels {
    component: &'static str,
    #[prometheus(flatten)]
    request: RequestLabels,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InFlight {
    request_kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stored {
    resource: String,
}

/// A guard that decrements a gauge on drop.
#[derive(Debug)]
pub(super) struct Counted(Gauge);

impl Counted {
    fn in_gauge(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The counters of one server.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<CompletedLabels, Counter>,
    in_flight: Family<InFlight, Gauge>,
    long_running: Family<RequestLabels, Gauge>,
    stored: Family<Stored, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            in_flight: Family::default(),
            long_running: Family::default(),
            stored: Family::default(),
        };
        let Self { registry, requests, in_flight, long_running, stored } = &mut metrics;
        registry.register("apiserver_request", "Completed requests", requests.clone());
        let help = "Requests in progress, except watches";
        registry.register("apiserver_current_inflight_requests", help, in_flight.clone());
        registry.register("apiserver_longrunning_requests", "Open watches", long_running.clone());
        registry.register("apiserver_storage_objects", "Stored objects, by resource", stored.clone());
        metrics
    }
}

impl Metrics {
    /// Counts a request in progress.
    pub(super) fn begin(&self, method: &Method) -> Counted {
        let is_read = *method == Method::GET || *method == Method::HEAD;
        let request_kind = if is_read { "readOnly" } else { "mutating" };
        Counted::in_gauge(self.in_flight.get_or_create_owned(&InFlight { request_kind }))
    }

    /// Counts an open watch.
    pub(super) fn long_running(&self, request: &RequestLabels) -> Counted {
        Counted::in_gauge(self.long_running.get_or_create_owned(request))
    }

    /// Counts a completed request.
    pub(super) fn end(&self, request: RequestLabels, code: u16) {
        let labels = CompletedLabels { component: "apiserver", request, code };
        self.requests.get_or_create(&labels).inc();
    }

    /// Encodes all metrics as text.
    pub(super) fn encode(&self, kinds: &Kinds, store: &dyn Storage) -> String {
        self.stored.clear();
        for kind in kinds.iter().filter(|kind| kind.gvk == kind.storage && kind.allows("list")) {
            let resource = table_of(kind);
            let count = i64::try_from(store.count(&resource)).unwrap_or(i64::MAX);
            self.stored.get_or_create(&Stored { resource }).set(count);
        }
        let mut out = String::new();
        // Writing to memory cannot fail.
        _ = text::encode(&mut out, &self.registry);
        out
    }
}
