//! What the server has done and is doing, under the names dashboards for API servers know.
//!
//! | name | kind | meaning |
//! |---|---|---|
//! | `apiserver_request_total` | counter | requests that were answered |
//! | `apiserver_current_inflight_requests` | gauge | requests that are being answered, watches not among them |
//! | `apiserver_longrunning_requests` | gauge | watches that are open |
//! | `apiserver_storage_objects` | gauge | objects, by resource |
//!
//! Labels are names of what is served, never what a client made up, so there are only so many series.

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

/// The media type of what [`Metrics::encode`] writes.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a request was about. Put among the extensions of its answer once it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct About {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
}

impl About {
    /// A request to a kind: in a collection, or about one object.
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

    /// A request to nothing that is served, or to something that is no resource.
    pub(super) fn nothing(method: &Method) -> Self {
        let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let verbs = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
        let verb = known.iter().position(|known| known == method).and_then(|place| verbs.get(place).copied());
        Self { verb: verb.unwrap_or("other"), ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    component: &'static str,
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
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

/// Counts while it is there.
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
    answered: Family<Answered, Counter>,
    in_flight: Family<InFlight, Gauge>,
    long_running: Family<About, Gauge>,
    stored: Family<Stored, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            answered: Family::default(),
            in_flight: Family::default(),
            long_running: Family::default(),
            stored: Family::default(),
        };
        let Self { registry, answered, in_flight, long_running, stored } = &mut metrics;
        registry.register("apiserver_request", "Requests that were answered", answered.clone());
        let help = "Requests that are being answered, watches not among them";
        registry.register("apiserver_current_inflight_requests", help, in_flight.clone());
        registry.register("apiserver_longrunning_requests", "Watches that are open", long_running.clone());
        registry.register("apiserver_storage_objects", "Objects that are stored", stored.clone());
        metrics
    }
}

impl Metrics {
    /// A request that is being answered.
    pub(super) fn begin(&self, method: &Method) -> Counted {
        let is_read = *method == Method::GET || *method == Method::HEAD;
        let request_kind = if is_read { "readOnly" } else { "mutating" };
        Counted::in_gauge(self.in_flight.get_or_create_owned(&InFlight { request_kind }))
    }

    /// A watch that is open.
    pub(super) fn long_running(&self, about: &About) -> Counted {
        Counted::in_gauge(self.long_running.get_or_create_owned(about))
    }

    /// A request that was answered.
    pub(super) fn end(&self, about: About, code: u16) {
        let About { verb, group, version, resource, subresource, scope } = about;
        let component = "apiserver";
        let labels = Answered { component, verb, group, version, resource, subresource, scope, code };
        self.answered.get_or_create(&labels).inc();
    }

    /// All of it as text.
    pub(super) fn encode(&self, kinds: &Kinds, store: &dyn Storage) -> String {
        self.stored.clear();
        for kind in kinds.iter().filter(|kind| kind.gvk == kind.storage && kind.allows("list")) {
            let resource = table_of(kind);
            let count = i64::try_from(store.count(&resource)).unwrap_or(i64::MAX);
            self.stored.get_or_create(&Stored { resource }).set(count);
        }
        let mut out = String::new();
        // Writing to memory has no way to fail.
        _ = text::encode(&mut out, &self.registry);
        out
    }
}
