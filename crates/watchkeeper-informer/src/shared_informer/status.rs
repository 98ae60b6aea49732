//! Status and counters of shared informers.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::select_all;
use watchkeeper_client::list_watch::Selection;
use watchkeeper_time::TokioClock;

use super::handle::SharedIndexInformer;
use crate::{
    MemoryStats, Object, ResourceVersion,
    controller::PartView,
    reflector::Quarantined,
    status::{Monitor, ReflectorStats, Status},
};

/// The status of an informer, with waiting for changes.
///
/// With several sources, this is the worst status of any source.
#[derive(Debug, Clone)]
pub struct StatusWatch {
    monitors: Vec<Monitor>,
}

impl StatusWatch {
    pub(super) fn new(monitors: Vec<Monitor>) -> Self {
        Self { monitors }
    }

    /// Returns the current status.
    pub fn status(&self) -> Status {
        let worst = self.monitors.iter().map(Monitor::status).max_by_key(rank);
        worst.unwrap_or_else(|| Status::Synced { since: TokioClock::new().instant() })
    }

    /// Waits until the status of a source differs from that at the last call, or when this value was created
    /// or cloned. Returns immediately after [`Status::Stopped`], which is final.
    pub async fn changed(&mut self) -> Status {
        if self.monitors.is_empty() {
            std::future::pending::<()>().await;
        }
        let changes = self.monitors.iter_mut().map(|monitor| Box::pin(monitor.changed()));
        drop(select_all(changes).await);
        self.status()
    }
}

/// Returns the severity of a status.
fn rank(status: &Status) -> u8 {
    match status {
        Status::Synced { .. } => 0,
        Status::Listing { .. } => 1,
        Status::Connecting => 2,
        Status::Stale { .. } => 3,
        Status::Parked { .. } => 4,
        Status::Failing { .. } => 5,
        Status::Stopped => 6,
    }
}

/// The counters of an informer at one moment, for metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[doc(alias = "SetInformerMetricsProvider")]
pub struct InformerStats {
    /// The number of objects in the cache.
    pub objects: usize,
    /// The resourceVersion up to which the cache is complete.
    pub resource_version: Option<ResourceVersion>,
    /// The history epoch: the number of times that the server's history was found to have been replaced.
    pub epoch: u64,
    /// The number of keys with changes that were received but are not in the cache yet.
    pub queued_keys: usize,
    /// The number of these changes.
    pub queued_changes: usize,
    /// The number of handlers, including removed ones whose last call has not returned.
    /// [`Registration::status`](crate::handler::Registration::status) returns the status of each.
    pub handlers: usize,
    /// The lists, watches, events and failures of each source, by namespace. The key is `None` for a single
    /// source.
    pub sources: BTreeMap<Option<Arc<str>>, ReflectorStats>,
    /// The number of objects that are [quarantined](SharedIndexInformer::quarantined) now.
    pub quarantined: u64,
    /// The memory of the objects; `None` if all are kept decoded.
    pub memory: Option<MemoryStats>,
}

/// Methods for status and counters.
impl<K: Object> SharedIndexInformer<K> {
    /// Returns the status. With several sources, this is the worst status of any source.
    pub fn status(&self) -> Status {
        self.status_watch().status()
    }

    /// Returns a watch on the status, to wait for changes.
    pub fn status_watch(&self) -> StatusWatch {
        StatusWatch::new(self.inner().parts.iter().map(|part| part.monitor.clone()).collect())
    }

    /// Returns the monitor of each source, by namespace if there are several.
    #[doc(alias = "GetController")]
    pub fn monitors(&self) -> Vec<(Option<Arc<str>>, Monitor)> {
        self.inner().parts.iter().map(|part| (part.namespace.clone(), part.monitor.clone())).collect()
    }

    /// Returns the [selection](Selection) of each source, by namespace if there are several. `None` is a
    /// source that does not report its selection.
    pub fn selections(&self) -> Vec<(Option<Arc<str>>, Option<Selection>)> {
        self.inner().parts.iter().map(|part| (part.namespace.clone(), part.selection.clone())).collect()
    }

    /// Returns the quarantined objects of all sources: objects that exist but could not be decoded or
    /// transformed.
    ///
    /// An object that is kept encoded is decoded when it is read. If that fails, the object is quarantined then, and remains
    /// in the cache with its metadata. All other quarantined objects are in the cache in their last good version, if any.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        let received = self.inner().parts.iter().flat_map(|part| part.monitor.quarantined());
        received.chain(self.quarantined_on_read()).collect()
    }

    /// Returns the objects in the cache that were found to be undecodable when they were read.
    fn quarantined_on_read(&self) -> Vec<Quarantined> {
        let mut objects = self.inner().memory.as_ref().map(|memory| memory.quarantined()).unwrap_or_default();
        if !objects.is_empty() {
            // Versions that were replaced may be read as long as a handler or a snapshot holds them.
            let snapshot = self.snapshot();
            objects.retain(|object| {
                let cached = snapshot.metadata(&*object.key);
                cached.is_some_and(|cached| cached.resource_version() == object.resource_version.as_deref())
            });
        }
        objects
    }

    /// Returns the counters of this informer.
    #[doc(alias = "InformerMetricsProvider")]
    pub fn stats(&self) -> InformerStats {
        let inner = self.inner();
        let snapshot = self.snapshot();
        let of_part = |part: &PartView<K>| (part.namespace.clone(), part.monitor.counters());
        let sources: BTreeMap<_, _> = inner.parts.iter().map(of_part).collect();
        // Objects are quarantined when they are received, or when they are decoded for a read.
        let received: u64 = sources.values().map(|source| source.quarantined).sum();
        InformerStats {
            objects: snapshot.len(),
            resource_version: snapshot.resource_version().cloned(),
            epoch: snapshot.epoch(),
            queued_keys: inner.parts.iter().map(|part| part.fifo.queued_keys()).sum(),
            queued_changes: inner.parts.iter().map(|part| part.fifo.queued_deltas()).sum(),
            handlers: inner.distributor.handler_count(),
            quarantined: received + self.quarantined_on_read().len() as u64,
            sources,
            memory: inner.memory.as_ref().map(|memory| memory.stats()),
        }
    }
}
