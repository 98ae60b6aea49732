//! Tracking of own writes across the keys of a controller.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use watchkeeper_informer::{ObjectKey, ResourceVersion};
use watchkeeper_workqueue::{Causes, Clock};

use super::{
    Coverage, MissedWrite, Readiness, ReconcileEnd, Target, TrackedCache, TrackingOptions, TriggerEvent,
    WriteRecord, WriteResponse, WriteVerb, key_record::KeyRecord,
};
use crate::{
    Freshness,
    hot_loop::{CountedWrite, HotLoopEvidence},
};

/// The number of records below which expired ones are not swept.
const SWEEP_AT_LEAST: usize = 1024;

/// The number of objects that are remembered as not observable. At the limit all are removed, and each costs
/// another timeout.
const UNOBSERVABLE_LIMIT: usize = 4096;

/// The state that connects consecutive reconciles of a key: own writes that the caches do not show yet, events that
/// enqueued the key, consecutive conflicts, and reconciles that the key caused itself.
///
/// Keys without such state have no record, so a controller that does not write has no cost.
pub(crate) struct WriteTracker {
    records: Mutex<Records>,
    /// Whether any record exists, so that workers skip the lock otherwise. Written only under the lock.
    has_records: AtomicBool,
    caches: Vec<Arc<dyn TrackedCache>>,
    clock: Arc<dyn Clock>,
    options: TrackingOptions,
    /// Whether a reconciler has obtained a tracking client. Before that, no event can stem from an own write.
    is_writing: AtomicBool,
}

struct Records {
    by_key: HashMap<ObjectKey, KeyRecord, RandomState>,
    /// The number of records at which expired ones are swept.
    sweep_at: usize,
    /// Objects whose writes were not observed before the timeout, by cache, where it is unknown whether the
    /// informer selects them. Their writes are not waited for until the cache has the object.
    unobservable: HashSet<(usize, ObjectKey), RandomState>,
}

/// A write that is about to be sent.
pub(crate) struct PendingWrite {
    before: Vec<StateBefore>,
    object: Option<ObjectKey>,
    verb: WriteVerb,
    returns_object: bool,
}

/// The state of the object in one cache before the write.
struct StateBefore {
    cache: usize,
    epoch: u64,
    version: Option<ResourceVersion>,
}

impl WriteTracker {
    pub(crate) fn new(
        caches: Vec<Arc<dyn TrackedCache>>,
        clock: Arc<dyn Clock>,
        options: TrackingOptions,
    ) -> Self {
        let records = Records {
            by_key: HashMap::default(),
            sweep_at: SWEEP_AT_LEAST,
            unobservable: HashSet::default(),
        };
        Self {
            records: Mutex::new(records),
            has_records: AtomicBool::new(false),
            caches,
            clock,
            options,
            is_writing: AtomicBool::new(false),
        }
    }

    /// Returns whether writes are tracked at all.
    pub(crate) fn is_tracking(&self) -> bool {
        self.options.freshness_timeout.is_some() || self.options.hot_loops.is_some()
    }

    /// Records that a reconciler may write from now on.
    pub(crate) fn expect_writes(&self) {
        self.is_writing.store(true, Ordering::Relaxed);
    }

    /// Returns whether events need to be recorded.
    pub(crate) fn needs_events(&self) -> bool {
        self.options.hot_loops.is_some() && self.is_writing.load(Ordering::Relaxed)
    }

    /// Records an event that enqueues a key. Call this before the key is enqueued.
    pub(crate) fn record_event(&self, key: &ObjectKey, event: TriggerEvent) {
        let now = self.clock.now();
        self.record_of(&mut self.records.lock(), key, now).record_event(event);
    }

    /// Reads the state of the caches before a request is sent. Returns `None` if no cache watches the target.
    pub(crate) fn prepare_write(&self, target: &Target<'_>) -> Option<PendingWrite> {
        let object = target.name.and_then(|name| ObjectKey::new(target.namespace, name).ok());
        let caches = self.caches.iter().enumerate().filter(|(_, cache)| cache.watches(target));
        let before: Vec<StateBefore> = caches
            .map(|(cache, view)| {
                let state = object.as_ref().and_then(|object| view.state_of(object));
                StateBefore { cache, epoch: view.epoch(), version: state.and_then(|state| state.version) }
            })
            .collect();
        let (verb, returns_object) = (target.verb, target.returns_object);
        (!before.is_empty()).then_some(PendingWrite { before, object, verb, returns_object })
    }

    /// Records a successful write of the reconcile of `key`.
    pub(crate) fn record_write(&self, key: &ObjectKey, pending: PendingWrite, response: WriteResponse) {
        let PendingWrite { before, object, verb, returns_object } = pending;
        let Some(object) = object.or(response.object) else { return };
        let labels = response.labels.as_ref().filter(|_| returns_object);
        let now = self.clock.now();
        let mut records = self.records.lock();
        let caches = before.into_iter().filter_map(|before| {
            let view = self.caches.get(before.cache)?;
            let coverage = records.coverage(before.cache, &**view, &object, labels);
            Some((before, view, coverage))
        });
        let caches: Vec<_> = caches.collect();
        let record = self.record_of(&mut records, key, now);
        let mut counted = None;
        for (before, view, coverage) in caches {
            let versions = [before.version.as_ref(), record.last_version(before.cache, &object)];
            let is_no_op = verb == WriteVerb::Change
                && response.version.is_some()
                && versions
                    .into_iter()
                    .any(|version| version.is_some() && version == response.version.as_ref());
            counted.get_or_insert_with(|| CountedWrite { resource: Arc::clone(view.resource()), is_no_op });
            if !is_no_op {
                let write = WriteRecord {
                    cache: before.cache,
                    object: object.clone(),
                    version: response.version.clone(),
                    uid: response.uid.clone(),
                    is_deletion: verb == WriteVerb::Delete,
                    epoch: before.epoch,
                    coverage,
                };
                record.record_write(write, now);
            }
        }
        if let Some(counted) = counted {
            record.count_write(counted);
        }
    }

    /// Returns whether a dequeued key may be reconciled now. If so, its reconcile begins.
    pub(crate) fn begin(&self, key: &ObjectKey, causes: &Causes) -> Readiness {
        if !self.has_records() {
            return Readiness::Ready(Freshness::Fresh);
        }
        let mut records = self.records.lock();
        let Some(record) = records.by_key.get_mut(key) else { return Readiness::Ready(Freshness::Fresh) };
        let now = self.clock.now();
        let readiness = record.begin(now, causes, self.options, &self.caches);
        if let Readiness::TimedOut { missed, .. } = &readiness {
            records.remember_unobservable(missed);
        }
        readiness
    }

    /// Records the end of a reconcile. Returns the number of consecutive conflicts before it, and the
    /// evidence of a hot loop if one is newly detected.
    pub(crate) fn end(
        &self,
        key: &ObjectKey,
        causes: &Causes,
        end: ReconcileEnd,
    ) -> (u32, Option<HotLoopEvidence>) {
        if end == ReconcileEnd::Other && !self.has_records() {
            return (0, None);
        }
        let mut records = self.records.lock();
        if end == ReconcileEnd::Other && !records.by_key.contains_key(key) {
            return (0, None);
        }
        let now = self.clock.now();
        let record = self.record_of(&mut records, key, now);
        let ended = record.end(now, causes, end, self.options);
        if record.is_empty() {
            let record = records.by_key.remove(key);
            if records.by_key.is_empty() {
                self.has_records.store(false, Ordering::Relaxed);
            }
            drop(records);
            drop(record);
        }
        ended
    }

    /// Returns the record of a key, creating it if needed.
    fn record_of<'a>(&self, records: &'a mut Records, key: &ObjectKey, now: Duration) -> &'a mut KeyRecord {
        if records.by_key.len() >= records.sweep_at && !records.by_key.contains_key(key) {
            records.by_key.retain(|_, record| {
                record.expire(now, self.options);
                record.remove_observed(&self.caches);
                !record.is_empty()
            });
            records.sweep_at = (2 * records.by_key.len()).max(SWEEP_AT_LEAST);
        }
        self.has_records.store(true, Ordering::Relaxed);
        records.by_key.entry(key.clone()).or_default()
    }

    /// Returns whether a record may exist for a key that the caller has dequeued.
    ///
    /// Relaxed ordering suffices. A record is created before its key is enqueued, or while the key is being
    /// processed; the queue's lock synchronizes that with the worker that dequeues the key next. After that,
    /// the flag is cleared only when the record was removed.
    fn has_records(&self) -> bool {
        self.has_records.load(Ordering::Relaxed)
    }
}

impl Records {
    /// Returns whether the informer of a cache selects a written object, based on the object's labels or on
    /// earlier timeouts.
    fn coverage(
        &mut self,
        cache: usize,
        view: &dyn TrackedCache,
        object: &ObjectKey,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Coverage {
        let coverage = view.coverage(object, labels);
        if coverage != Coverage::Unknown || self.unobservable.is_empty() {
            return coverage;
        }
        let entry = (cache, object.clone());
        if view.state_of(object).is_some() {
            self.unobservable.remove(&entry);
            return coverage;
        }
        if self.unobservable.contains(&entry) { Coverage::Outside } else { coverage }
    }

    fn remember_unobservable(&mut self, missed: &[MissedWrite]) {
        for MissedWrite { cache, object, .. } in missed.iter().filter(|missed| !missed.is_selected) {
            if self.unobservable.len() == UNOBSERVABLE_LIMIT {
                self.unobservable.clear();
            }
            self.unobservable.insert((*cache, object.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
