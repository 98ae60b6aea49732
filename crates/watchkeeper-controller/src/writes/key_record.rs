//! The tracked state of one key between two reconciles.

use std::{mem, sync::Arc, time::Duration};

use watchkeeper_informer::{ObjectKey, ResourceVersion};
use watchkeeper_workqueue::{Cause, Causes};

use super::{CacheView, Coverage, Ledger, TrackedCache, TriggerEvent, UnobservedWrite, WriteRecord};
use crate::{
    Freshness, HotLoopLimits,
    hot_loop::{CountedWrite, HotLoopDetector, HotLoopEvidence, Origin},
};

/// The number of trigger events that are kept per key. A key with more of them has external causes.
const MAX_EVENTS: usize = 8;

/// The delay before the first recheck of a key that waits for its writes; it doubles with each further one.
const MIN_RECHECK: Duration = Duration::from_millis(10);
/// The maximum delay between two rechecks.
const MAX_RECHECK: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackingOptions {
    /// The maximum time that a key waits for its writes to be observed. `None` disables the wait.
    pub(crate) freshness_timeout: Option<Duration>,
    /// The hot-loop limits. `None` disables the detection.
    pub(crate) hot_loops: Option<HotLoopLimits>,
}

/// The tracked state of one key. Pure: times and events in, decisions out.
#[derive(Debug, Default)]
pub(super) struct KeyRecord {
    ledger: Ledger,
    events: Vec<TriggerEvent>,
    has_more_events: bool,
    /// The number of consecutive conflicts.
    conflicts: u32,
    /// The time since which the key waits for its writes to be observed.
    waits_since: Option<Duration>,
    /// The origin of the reconcile in progress.
    origin: Option<Origin>,
    /// The writes of the reconcile in progress.
    writes: Vec<CountedWrite>,
    hot_loop: HotLoopDetector,
}

/// Whether a key may be reconciled now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The caches show all own writes.
    Ready(Freshness),
    /// The timeout has elapsed: the key is reconciled although the caches do not show these writes.
    TimedOut { waited: Duration, missed: Vec<MissedWrite> },
    /// The caches do not show all own writes yet: check again after this delay.
    Wait { recheck_after: Duration, is_first: bool },
}

/// The end of a reconcile, as far as it is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReconcileEnd {
    Conflict,
    Other,
}

/// A write that was not observed before the timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissedWrite {
    /// The index of the cache.
    pub(crate) cache: usize,
    /// The name of the informer.
    pub(crate) informer: String,
    pub(crate) object: ObjectKey,
    /// Whether the informer selects the object, so that the cache is behind. Otherwise the object may never
    /// be observed, and its next writes are not waited for.
    pub(crate) is_selected: bool,
}

impl MissedWrite {
    fn of(write: UnobservedWrite, caches: &[Arc<dyn TrackedCache>]) -> Option<Self> {
        let UnobservedWrite { cache, object, coverage, .. } = write;
        let view = caches.get(cache)?;
        let is_selected = coverage != Coverage::Unknown || view.state_of(&object).is_some();
        Some(Self { cache, informer: view.informer().to_owned(), object, is_selected })
    }
}

fn view(caches: &[Arc<dyn TrackedCache>], cache: usize) -> Option<&dyn CacheView> {
    caches.get(cache).map(|cache| &**cache as &dyn CacheView)
}

impl KeyRecord {
    /// Records an event that enqueued the key.
    pub(super) fn record_event(&mut self, event: TriggerEvent) {
        if self.events.len() == MAX_EVENTS {
            self.has_more_events = true;
        } else {
            self.events.push(event);
        }
    }

    /// Records a write that a cache is expected to show.
    pub(super) fn record_write(&mut self, write: WriteRecord, now: Duration) {
        self.ledger.record(write, now);
    }

    /// Counts a write of the reconcile in progress.
    pub(super) fn count_write(&mut self, write: CountedWrite) {
        self.writes.push(write);
    }

    /// Returns the version that the key's last write of an object created.
    pub(super) fn last_version(&self, cache: usize, object: &ObjectKey) -> Option<&ResourceVersion> {
        self.ledger.last_version(cache, object)
    }

    /// Returns whether the key may be reconciled at `now`. If so, the reconcile begins.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        causes: &Causes,
        options: TrackingOptions,
        caches: &[Arc<dyn TrackedCache>],
    ) -> Readiness {
        let is_fresh = options.freshness_timeout.is_none() || self.remove_observed(caches);
        let is_first = self.waits_since.is_none();
        if !is_fresh {
            let waited = now.saturating_sub(*self.waits_since.get_or_insert(now));
            let left = options.freshness_timeout.unwrap_or_default().saturating_sub(waited);
            if !left.is_zero() {
                let recheck_after = waited.clamp(MIN_RECHECK, MAX_RECHECK).min(left);
                return Readiness::Wait { recheck_after, is_first };
            }
        }
        let missed = if is_fresh { Vec::new() } else { self.ledger.take_unobserved() };
        let waited = self.waits_since.take().map(|since| now.saturating_sub(since));
        self.origin = Some(self.origin_of(causes));
        self.events.clear();
        self.has_more_events = false;
        self.writes.clear();
        match waited {
            None => Readiness::Ready(Freshness::Fresh),
            Some(waited) if is_fresh => Readiness::Ready(Freshness::Waited(waited)),
            Some(waited) => {
                let missed = missed.into_iter().filter_map(|write| MissedWrite::of(write, caches));
                Readiness::TimedOut { waited, missed: missed.collect() }
            }
        }
    }

    /// Ends the reconcile. Returns the number of consecutive conflicts before it, and the evidence of a hot loop if
    /// one is newly detected.
    pub(super) fn end(
        &mut self,
        now: Duration,
        causes: &Causes,
        end: ReconcileEnd,
        options: TrackingOptions,
    ) -> (u32, Option<HotLoopEvidence>) {
        let conflicts = self.conflicts;
        self.conflicts = if end == ReconcileEnd::Conflict { conflicts.saturating_add(1) } else { 0 };
        // Without a record at dequeue time, no event stems from an own write.
        let origin = self.origin.take().unwrap_or_else(|| Self::default().origin_of(causes));
        let writes = mem::take(&mut self.writes);
        let evidence =
            options.hot_loops.and_then(|limits| self.hot_loop.reconciled(now, origin, writes, limits));
        self.expire(now, options);
        (conflicts, evidence)
    }

    /// Returns the origin of a reconcile with these causes.
    fn origin_of(&self, causes: &Causes) -> Origin {
        let all_are = |is_it: fn(&Cause) -> bool| !causes.is_empty() && causes.iter().all(is_it);
        if all_are(|cause| matches!(cause, Cause::Requeue)) {
            return Origin::Requeue;
        }
        let is_own_event = all_are(|cause| matches!(cause, Cause::Event(_)))
            && !self.events.is_empty()
            && !self.has_more_events
            && self.events.iter().all(|event| self.ledger.is_own(event));
        if is_own_event { Origin::OwnEvent } else { Origin::External }
    }

    /// Removes the writes that the caches show. Returns whether none is left.
    pub(super) fn remove_observed(&mut self, caches: &[Arc<dyn TrackedCache>]) -> bool {
        self.ledger.remove_observed(|cache| view(caches, cache))
    }

    /// Removes what is older than the hot-loop window.
    pub(super) fn expire(&mut self, now: Duration, options: TrackingOptions) {
        let limits = options.hot_loops.unwrap_or_default();
        self.hot_loop.expire(now, limits);
        self.ledger.expire(now.saturating_sub(limits.window));
    }

    /// Returns whether the record contains nothing that the next reconcile needs.
    pub(super) fn is_empty(&self) -> bool {
        self.ledger.is_empty()
            && self.events.is_empty()
            && self.conflicts == 0
            && self.waits_since.is_none()
            && self.hot_loop.is_empty()
    }
}
