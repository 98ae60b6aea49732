//! Where the status is written, and where it is read.

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

use super::{
    CountersSnapshot, Status,
    counters::{Counters, count},
};
use crate::{
    reflector::{Quarantined, WatchFailure, clock::Clock, machine::Notice},
    start::Start,
};

#[derive(Debug, Default)]
struct Shared {
    clock: Clock,
    counters: Counters,
    quarantine: Mutex<BTreeMap<Arc<str>, Quarantined>>,
    resource_version: Mutex<String>,
    /// Whether a list has been handed on whole, ever.
    has_synced: AtomicBool,
}

impl Shared {
    fn has_synced(&self) -> bool {
        self.has_synced.load(Acquire)
    }
}

/// The writing end. Dropped, it says that it is over.
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
        Monitor { status: self.status.subscribe(), shared: Arc::clone(&self.shared), start: Start::default() }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Everything up to this version has been handed on.
    pub(crate) fn reached(&self, version: Option<&str>) {
        let mut reached = self.shared.resource_version.lock();
        if let Some(version) = version
            && *reached != version
        {
            // In place: this happens with every event.
            reached.clear();
            reached.push_str(version);
        }
    }

    pub(crate) fn tell(&mut self, notice: &Notice) {
        let Self { shared, .. } = self;
        let counters = &shared.counters;
        match notice {
            Notice::ListStarted { is_streaming, cause } => {
                count(&counters.lists);
                if *is_streaming {
                    count(&counters.streaming_lists);
                }
                if let Some(cause) = cause {
                    counters.relists.add(cause);
                }
            }
            Notice::Listed { received, about } => {
                if !shared.has_synced() {
                    self.status.send_replace(Status::Listing { received: *received, about: *about });
                }
            }
            Notice::Synced => {
                // Before the status, so that who is woken by it finds this true.
                shared.has_synced.store(true, Release);
                self.synced();
            }
            Notice::WatchRestarted { reason } => counters.watch_restarts.add(reason),
            Notice::WatchOpened => {
                count(&counters.watches);
                self.synced();
            }
            Notice::Failed(failure) => {
                count(&counters.failures);
                self.failed(failure);
            }
            Notice::Quarantined(object) => {
                let mut quarantine = shared.quarantine.lock();
                quarantine.insert(Arc::clone(&object.key), object.clone());
            }
            Notice::Released(key) => {
                shared.quarantine.lock().remove(key);
            }
            Notice::WentBack { .. } => count(&counters.steps_back),
            Notice::NewEpoch { .. } => count(&counters.epochs),
            Notice::StreamingGivenUp { .. } => count(&counters.streaming_given_up),
            Notice::HistoryChecked => count(&counters.probes),
        }
    }

    fn synced(&self) {
        let since = Clock::instant();
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
            // It goes on at once, and if that does not work either, that will be told.
            return;
        }
        let now = Clock::instant();
        let (why, message) = (failure.reason, Arc::clone(&failure.message));
        self.status.send_modify(|status| {
            *status = if why == Reason::Api(ApiReason::NotFound) {
                let since = if let Status::Parked { since, .. } = status { *since } else { now };
                Status::Parked { message, since }
            } else if self.shared.has_synced() && failure.will_pass {
                let since = if let Status::Stale { since, .. } = status { *since } else { now };
                Status::Stale { since, why }
            } else {
                let since = if let Status::Failing { since, .. } = status { *since } else { now };
                let WatchFailure { attempts, will_pass, .. } = *failure;
                Status::Failing { why, message, since, attempts, will_pass }
            };
        });
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.status.send_replace(Status::Stopped);
    }
}

/// How a reflector is doing, to be read by anyone. Clones read the same.
pub struct Monitor {
    pub(super) status: watch::Receiver<Status>,
    shared: Arc<Shared>,
    pub(super) start: Start,
}

impl Monitor {
    /// Makes waits on the monitor fail until `start` is complete.
    pub(crate) fn starting_with(self, start: &Start) -> Self {
        Self { start: start.clone(), ..self }
    }

    /// The status.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Returns when the status is another than when this was last called, or than when the monitor was made or cloned; at
    /// once if that is so already. After [`Status::Stopped`] there is no other, and it returns at once.
    pub async fn changed(&mut self) -> Status {
        // The only error is that nobody will write it again.
        let _ = self.status.changed().await;
        self.status.borrow_and_update().clone()
    }

    /// Whether a list has been read whole and handed on, ever. What became of the connection since is another matter.
    pub fn has_synced(&self) -> bool {
        self.shared.has_synced()
    }

    /// Notes that everything was put in line again.
    pub(crate) fn resynced(&self) {
        self.shared.counters.resynced();
    }

    /// The counters.
    pub fn counters(&self) -> CountersSnapshot {
        let quarantined = self.shared.quarantine.lock().len();
        self.shared.counters.snapshot(self.shared.clock.now(), quarantined)
    }

    /// The objects that are set aside now, by key.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.shared.quarantine.lock().values().cloned().collect()
    }

    /// Everything up to this version has been handed to the sink; none before the first list was. A cache behind the sink
    /// may still be on its way there.
    pub fn last_sync_resource_version(&self) -> Option<String> {
        Some(self.shared.resource_version.lock().clone()).filter(|version| !version.is_empty())
    }
}

impl Clone for Monitor {
    fn clone(&self) -> Self {
        let mut status = self.status.clone();
        // A clone waits for what changes from now on, whatever the original had seen.
        status.mark_unchanged();
        Self { status, shared: Arc::clone(&self.shared), start: self.start.clone() }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("status", &*self.status.borrow()).finish_non_exhaustive()
    }
}
