//! The status of a reflector: its writer and its readers.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
};

use parking_lot::Mutex;
use tokio::sync::watch;
use watchkeeper_client::{classify::Reason, error::ApiReason};
use watchkeeper_time::{Clock as _, TokioClock};

use super::{
    ReflectorStats, Status,
    counters::{ReflectorCounters, count},
};
use crate::{
    reflector::{Quarantined, WatchFailure, machine::ReflectorEvent},
    start::InformerStart,
};

#[derive(Debug, Default)]
struct Shared {
    clock: TokioClock,
    counters: ReflectorCounters,
    quarantine: Mutex<BTreeMap<Arc<str>, Quarantined>>,
    resource_version: Mutex<String>,
    /// Whether a complete list was ever passed to the sink.
    has_synced: AtomicBool,
}

impl Shared {
    fn has_synced(&self) -> bool {
        self.has_synced.load(Acquire)
    }
}

/// The writer of a status. Dropping it sets [`Status::Stopped`].
#[derive(Debug)]
pub(crate) struct Reporter {
    status: watch::Sender<Status>,
    shared: Arc<Shared>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Self { status: watch::Sender::new(Status::Connecting), shared: Arc::default() }
    }

    pub(crate) fn monitor(&self) -> Monitor {
        Monitor {
            status: self.status.subscribe(),
            shared: Arc::clone(&self.shared),
            start: InformerStart::default(),
        }
    }

    pub(crate) fn clock(&self) -> &TokioClock {
        &self.shared.clock
    }

    pub(crate) fn counters(&self) -> &ReflectorCounters {
        &self.shared.counters
    }

    /// Records that everything up to `version` was passed to the sink.
    pub(crate) fn reached(&self, version: Option<&str>) {
        let mut reached = self.shared.resource_version.lock();
        if let Some(version) = version
            && *reached != version
        {
            // In place, because this is called for every event.
            reached.clear();
            reached.push_str(version);
        }
    }

    pub(crate) fn record(&mut self, event: &ReflectorEvent) {
        let Self { shared, .. } = self;
        let counters = &shared.counters;
        match event {
            ReflectorEvent::ListStarted { is_streaming, cause } => {
                count(&counters.lists);
                if *is_streaming {
                    count(&counters.streaming_lists);
                }
                if let Some(cause) = cause {
                    counters.relists.add(cause);
                }
            }
            ReflectorEvent::Listed { received, estimated_total } => {
                if !shared.has_synced() {
                    self.status.send_replace(Status::Listing {
                        received: *received,
                        estimated_total: *estimated_total,
                    });
                }
            }
            ReflectorEvent::Synced => {
                // Set before the status, so that a task woken by the status observes it.
                shared.has_synced.store(true, Release);
                self.synced();
            }
            ReflectorEvent::WatchRestarted { reason } => counters.watch_restarts.add(reason),
            ReflectorEvent::WatchOpened => {
                count(&counters.watches);
                self.synced();
            }
            ReflectorEvent::Failed(failure) => {
                count(&counters.failures);
                self.failed(failure);
            }
            ReflectorEvent::Quarantined(object) => {
                let mut quarantine = shared.quarantine.lock();
                quarantine.insert(Arc::clone(&object.key), object.clone());
            }
            ReflectorEvent::Released(key) => {
                shared.quarantine.lock().remove(key);
            }
            ReflectorEvent::VersionWentBack { .. } => count(&counters.older_versions),
            ReflectorEvent::NewEpoch { .. } => count(&counters.epochs),
            ReflectorEvent::StreamingFallback { .. } => count(&counters.streaming_fallbacks),
            ReflectorEvent::HistoryChecked => count(&counters.history_checks),
        }
    }

    fn synced(&self) {
        let since = self.shared.clock.instant();
        self.status.send_if_modified(|status| {
            let is_news = !status.is_synced();
            if is_news {
                *status = Status::Synced { since };
            }
            is_news
        });
    }

    fn failed(&self, failure: &WatchFailure) {
        if failure.retry_in.is_none() {
            // Retried immediately. If the retry fails too, that failure is reported.
            return;
        }
        let now = self.shared.clock.instant();
        let (why, message) = (failure.reason, Arc::clone(&failure.message));
        self.status.send_modify(|status| {
            *status = if why == Reason::Api(ApiReason::NotFound) {
                let since = if let Status::Parked { since, .. } = status { *since } else { now };
                Status::Parked { message, since }
            } else if self.shared.has_synced() && failure.is_transient {
                let since = if let Status::Stale { since, .. } = status { *since } else { now };
                Status::Stale { since, why }
            } else {
                let since = if let Status::Failing { since, .. } = status { *since } else { now };
                let WatchFailure { attempts, is_transient, .. } = *failure;
                Status::Failing { why, message, since, attempts, is_transient }
            };
        });
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.status.send_replace(Status::Stopped);
    }
}

/// A read handle to the status and the counters of a reflector.
///
/// Clones read the same reflector. A monitor does not keep the reflector running, and remains readable after the
/// reflector has stopped. [`Reflector::monitor`](crate::reflector::Reflector::monitor) and
/// [`SharedIndexInformer::monitors`](crate::SharedIndexInformer::monitors) return monitors.
pub struct Monitor {
    pub(super) status: watch::Receiver<Status>,
    shared: Arc<Shared>,
    pub(super) start: InformerStart,
}

impl Monitor {
    /// Makes waits on the monitor fail until `start` is complete.
    pub(crate) fn starting_with(self, start: &InformerStart) -> Self {
        Self { start: start.clone(), ..self }
    }

    /// Returns the current status.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Waits for the next change of the status, and returns the new status.
    ///
    /// Changes count from the last call of this method, or from the creation of this monitor or clone. If the
    /// status has already changed since then, or is [`Status::Stopped`], which is final, this returns immediately.
    pub async fn changed(&mut self) -> Status {
        // The only error is that the writer was dropped.
        let _ = self.status.changed().await;
        self.status.borrow_and_update().clone()
    }

    /// Returns whether the initial list has been passed to the sink completely. Stays true if the connection is
    /// lost later.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.shared.has_synced()
    }

    /// Counts a resync.
    pub(crate) fn resynced(&self) {
        self.shared.counters.resynced();
    }

    /// Returns the counters of lists, watches, failures and quarantined objects since the start.
    pub fn counters(&self) -> ReflectorStats {
        let quarantined = self.shared.quarantine.lock().len();
        self.shared.counters.snapshot(self.shared.clock.now(), quarantined)
    }

    /// Returns the objects that are quarantined now, sorted by key.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.shared.quarantine.lock().values().cloned().collect()
    }

    /// Returns the resourceVersion up to which everything was passed to the sink, or `None` before the
    /// initial list. A cache behind the sink may not contain all of it yet.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> Option<String> {
        Some(self.shared.resource_version.lock().clone()).filter(|version| !version.is_empty())
    }
}

impl Clone for Monitor {
    fn clone(&self) -> Self {
        let mut status = self.status.clone();
        // A clone waits for changes from now on, whatever the original has observed.
        status.mark_unchanged();
        Self { status, shared: Arc::clone(&self.shared), start: self.start.clone() }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("status", &*self.status.borrow()).finish_non_exhaustive()
    }
}
