//! State of keys that is kept between two reconciles.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use watchkeeper_informer::{ObjectKey, ResourceVersion};
use watchkeeper_workqueue::{Cause, Causes, Clock};

use crate::{
    Freshness, HotLoopLimits,
    hot_loop::{Evidence, LoopTrack, Origin, WriteMade},
    writes::{Answer, CacheView, Coverage, Ledger, Target, Trigger, Unseen, WriteVerb, Written},
};

/// The number of trigger events that are kept per key. A key with more of them is busy for other reasons.
const TRIGGERS: usize = 8;

/// The delay before the first recheck of a key that waits for its writes; it doubles with each further one.
const FIRST_LOOK: Duration = Duration::from_millis(10);
/// The maximum delay between two rechecks.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// The number of notes below which no sweep of expired notes takes place.
const SWEEP_AT_LEAST: usize = 1024;

/// The number of objects that are remembered as not observable. Above it, all are forgotten, and each costs
/// another timeout.
const UNOBSERVABLE_LIMIT: usize = 4096;

/// A cache of the controller, as used for tracking writes.
pub(crate) trait FollowedCache: CacheView {
    /// Returns the name of the informer.
    fn informer(&self) -> &str;
    /// Returns the name of the resource, for messages.
    fn resource(&self) -> &Arc<str>;
    /// Returns whether the informer watches the resource and namespace that a request writes to, and has synced.
    fn follows(&self, target: &Target<'_>) -> bool;
    /// Returns whether the informer selects an object with these labels; `None` stands for unknown labels.
    fn coverage(&self, object: &ObjectKey, labels: Option<&BTreeMap<String, String>>) -> Coverage;
}

/// State of keys between two reconciles: own writes that the caches do not show yet, events that triggered
/// the key, consecutive conflicts, and reconciles that the key caused itself.
///
/// Keys without such state have no entry, so a controller that does not write pays nothing.
pub(crate) struct Memory {
    keys: Mutex<Keys>,
    /// Whether any note exists, so that workers skip the lock otherwise. Written only under the lock.
    has_notes: AtomicBool,
    caches: Vec<Arc<dyn FollowedCache>>,
    clock: Arc<dyn Clock>,
    options: MemoryOptions,
    /// Whether a reconciler has obtained a tracking client. Before that, no event can stem from an own write.
    is_writing: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryOptions {
    /// The maximum time that a key waits for its writes to be observed. `None` disables the wait.
    pub(crate) freshness_timeout: Option<Duration>,
    /// The hot-loop limits. `None` disables the detection.
    pub(crate) hot_loops: Option<HotLoopLimits>,
}

struct Keys {
    notes: HashMap<ObjectKey, Note, RandomState>,
    /// The number of notes at which expired ones are swept.
    sweep_at: usize,
    /// Objects whose writes were not observed before the timeout, by cache, where it is unknown whether the
    /// informer selects them. Their writes are not waited for until the cache has the object.
    unobservable: HashSet<(usize, ObjectKey), RandomState>,
}

/// The state of one key. Pure: times and events in, decisions out.
#[derive(Debug, Default)]
pub(crate) struct Note {
    ledger: Ledger,
    triggers: Vec<Trigger>,
    has_more_triggers: bool,
    conflicts: u32,
    /// The time since which the key waits for its writes to be observed.
    waits_since: Option<Duration>,
    origin: Option<Origin>,
    made: Vec<WriteMade>,
    track: LoopTrack,
}

/// A write that is about to be sent.
pub(crate) struct Pending {
    caches: Vec<Seen>,
    object: Option<ObjectKey>,
    verb: WriteVerb,
    returns_object: bool,
}

/// The state of the object in a cache before the write.
struct Seen {
    cache: usize,
    epoch: u64,
    version: Option<ResourceVersion>,
}

/// A write that was not observed before the timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) cache: usize,
    /// The name of the informer.
    pub(crate) informer: String,
    pub(crate) object: ObjectKey,
    /// Whether the informer selects the object, so that the cache is behind. Otherwise the object may never
    /// be observed, and its next writes are not waited for.
    pub(crate) is_selected: bool,
}

/// Whether a key may be reconciled now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Begin {
    Now(Freshness),
    /// Reconcile now, because the timeout has elapsed.
    Late {
        waited: Duration,
        missed: Vec<Missed>,
    },
    /// Wait for own writes, and check again after this delay.
    Wait {
        look_after: Duration,
        is_first: bool,
    },
}

/// The outcome of a reconcile, as far as it is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Conflict,
    Other,
}

impl Memory {
    pub(crate) fn new(
        caches: Vec<Arc<dyn FollowedCache>>,
        clock: Arc<dyn Clock>,
        options: MemoryOptions,
    ) -> Self {
        let keys =
            Keys { notes: HashMap::default(), sweep_at: SWEEP_AT_LEAST, unobservable: HashSet::default() };
        Self {
            keys: Mutex::new(keys),
            has_notes: AtomicBool::new(false),
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

    /// Returns whether trigger events need to be recorded.
    pub(crate) fn wants_triggers(&self) -> bool {
        self.options.hot_loops.is_some() && self.is_writing.load(Ordering::Relaxed)
    }

    /// Records an event that enqueues a key. Call this before the key is enqueued.
    pub(crate) fn triggered(&self, key: &ObjectKey, trigger: Trigger) {
        let now = self.clock.now();
        self.note(&mut self.keys.lock(), key, now).triggered(trigger);
    }

    /// Records the state of the caches before a request is sent. Returns `None` if no cache contains the
    /// target.
    pub(crate) fn about_to_write(&self, target: &Target<'_>) -> Option<Pending> {
        let object = target.name.and_then(|name| ObjectKey::new(target.namespace, name).ok());
        let caches = self.caches.iter().enumerate().filter(|(_, cache)| cache.follows(target));
        let caches: Vec<Seen> = caches
            .map(|(cache, view)| {
                let held = object.as_ref().and_then(|object| view.held(object));
                Seen { cache, epoch: view.epoch(), version: held.and_then(|held| held.version) }
            })
            .collect();
        let (verb, returns_object) = (target.verb, target.returns_object);
        (!caches.is_empty()).then_some(Pending { caches, object, verb, returns_object })
    }

    /// Records a successful write.
    pub(crate) fn wrote(&self, key: &ObjectKey, pending: Pending, answer: Answer) {
        let Pending { caches, object, verb, returns_object } = pending;
        let Some(object) = object.or(answer.object) else { return };
        let labels = answer.labels.as_ref().filter(|_| returns_object);
        let now = self.clock.now();
        let mut keys = self.keys.lock();
        let caches = caches.into_iter().filter_map(|seen| {
            let view = self.caches.get(seen.cache)?;
            let coverage = keys.coverage(seen.cache, &**view, &object, labels);
            Some((seen, view, coverage))
        });
        let caches: Vec<_> = caches.collect();
        let note = self.note(&mut keys, key, now);
        let mut made = None;
        for (seen, view, coverage) in caches {
            let before = [seen.version.as_ref(), note.ledger.last_version(seen.cache, &object)];
            let is_no_op = verb == WriteVerb::Change
                && answer.version.is_some()
                && before.into_iter().any(|before| before.is_some() && before == answer.version.as_ref());
            made.get_or_insert_with(|| WriteMade { resource: Arc::clone(view.resource()), is_no_op });
            if !is_no_op {
                let written = Written {
                    cache: seen.cache,
                    object: object.clone(),
                    version: answer.version.clone(),
                    uid: answer.uid.clone(),
                    is_deletion: verb == WriteVerb::Delete,
                    epoch: seen.epoch,
                    coverage,
                };
                note.ledger.wrote(written, now);
            }
        }
        note.made.extend(made);
    }

    /// Returns whether a dequeued key may be reconciled now.
    pub(crate) fn begin(&self, key: &ObjectKey, causes: &Causes) -> Begin {
        if !self.has_notes() {
            return Begin::Now(Freshness::Fresh);
        }
        let mut keys = self.keys.lock();
        let Some(note) = keys.notes.get_mut(key) else { return Begin::Now(Freshness::Fresh) };
        let now = self.clock.now();
        let begin = note.begin(now, causes, self.options, &self.caches);
        if let Begin::Late { missed, .. } = &begin {
            keys.remember_unobservable(missed);
        }
        begin
    }

    /// Records the end of a reconcile. Returns the number of consecutive conflicts before it, and the
    /// evidence of a hot loop if one is newly detected.
    pub(crate) fn end(&self, key: &ObjectKey, causes: &Causes, end: End) -> (u32, Option<Evidence>) {
        if end == End::Other && !self.has_notes() {
            return (0, None);
        }
        let mut keys = self.keys.lock();
        if end == End::Other && !keys.notes.contains_key(key) {
            return (0, None);
        }
        let now = self.clock.now();
        let note = self.note(&mut keys, key, now);
        let ended = note.end(now, causes, end, self.options);
        if note.is_empty() {
            let note = keys.notes.remove(key);
            if keys.notes.is_empty() {
                self.has_notes.store(false, Ordering::Relaxed);
            }
            drop(keys);
            drop(note);
        }
        ended
    }

    /// Returns the note of a key, creating it if needed.
    fn note<'a>(&self, keys: &'a mut Keys, key: &ObjectKey, now: Duration) -> &'a mut Note {
        if keys.notes.len() >= keys.sweep_at && !keys.notes.contains_key(key) {
            keys.notes.retain(|_, note| {
                note.expire(now, self.options);
                note.ledger.settle(|cache| view(&self.caches, cache));
                !note.is_empty()
            });
            keys.sweep_at = (2 * keys.notes.len()).max(SWEEP_AT_LEAST);
        }
        self.has_notes.store(true, Ordering::Relaxed);
        keys.notes.entry(key.clone()).or_default()
    }

    /// Returns whether a note may exist for a key that the caller has dequeued.
    ///
    /// Relaxed ordering suffices. A note is created before its key is enqueued, or while the key is being
    /// processed; the queue's lock synchronizes that with the worker that dequeues the key next. After that,
    /// the flag is cleared only when the note was removed.
    fn has_notes(&self) -> bool {
        self.has_notes.load(Ordering::Relaxed)
    }
}

fn view(caches: &[Arc<dyn FollowedCache>], cache: usize) -> Option<&dyn CacheView> {
    caches.get(cache).map(|cache| &**cache as &dyn CacheView)
}

impl Keys {
    /// Returns whether the informer of a cache selects a written object, based on the object's labels or on
    /// earlier timeouts.
    fn coverage(
        &mut self,
        cache: usize,
        view: &dyn FollowedCache,
        object: &ObjectKey,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Coverage {
        let coverage = view.coverage(object, labels);
        if coverage != Coverage::Unknown || self.unobservable.is_empty() {
            return coverage;
        }
        let entry = (cache, object.clone());
        if view.held(object).is_some() {
            self.unobservable.remove(&entry);
            return coverage;
        }
        if self.unobservable.contains(&entry) { Coverage::Outside } else { coverage }
    }

    fn remember_unobservable(&mut self, missed: &[Missed]) {
        for Missed { cache, object, .. } in missed.iter().filter(|missed| !missed.is_selected) {
            if self.unobservable.len() == UNOBSERVABLE_LIMIT {
                self.unobservable.clear();
            }
            self.unobservable.insert((*cache, object.clone()));
        }
    }
}

impl Missed {
    fn of(unseen: Unseen, caches: &[Arc<dyn FollowedCache>]) -> Option<Self> {
        let Unseen { cache, object, coverage, .. } = unseen;
        let view = caches.get(cache)?;
        let is_selected = coverage != Coverage::Unknown || view.held(&object).is_some();
        Some(Self { cache, informer: view.informer().to_owned(), object, is_selected })
    }
}

impl Note {
    fn triggered(&mut self, trigger: Trigger) {
        if self.triggers.len() == TRIGGERS {
            self.has_more_triggers = true;
        } else {
            self.triggers.push(trigger);
        }
    }

    fn begin(
        &mut self,
        now: Duration,
        causes: &Causes,
        options: MemoryOptions,
        caches: &[Arc<dyn FollowedCache>],
    ) -> Begin {
        let is_fresh = options.freshness_timeout.is_none() || self.ledger.settle(|cache| view(caches, cache));
        let is_first = self.waits_since.is_none();
        if !is_fresh {
            let waited = now.saturating_sub(*self.waits_since.get_or_insert(now));
            let left = options.freshness_timeout.unwrap_or_default().saturating_sub(waited);
            if !left.is_zero() {
                return Begin::Wait { look_after: waited.clamp(FIRST_LOOK, LAST_LOOK).min(left), is_first };
            }
        }
        let missed = if is_fresh { Vec::new() } else { self.ledger.give_up() };
        let waited = self.waits_since.take().map(|since| now.saturating_sub(since));
        self.origin = Some(self.origin_of(causes));
        self.triggers.clear();
        self.has_more_triggers = false;
        self.made.clear();
        match waited {
            None => Begin::Now(Freshness::Fresh),
            Some(waited) if is_fresh => Begin::Now(Freshness::Waited(waited)),
            Some(waited) => {
                let missed = missed.into_iter().filter_map(|unseen| Missed::of(unseen, caches));
                Begin::Late { waited, missed: missed.collect() }
            }
        }
    }

    /// Returns the origin of a reconcile with these causes.
    fn origin_of(&self, causes: &Causes) -> Origin {
        let all_are = |is_it: fn(&Cause) -> bool| !causes.is_empty() && causes.iter().all(is_it);
        if all_are(|cause| matches!(cause, Cause::Requeue)) {
            return Origin::Requeue;
        }
        let is_echo = all_are(|cause| matches!(cause, Cause::Event(_)))
            && !self.triggers.is_empty()
            && !self.has_more_triggers
            && self.triggers.iter().all(|trigger| self.ledger.is_own(trigger));
        if is_echo { Origin::Echo } else { Origin::Elsewhere }
    }

    fn end(
        &mut self,
        now: Duration,
        causes: &Causes,
        end: End,
        options: MemoryOptions,
    ) -> (u32, Option<Evidence>) {
        let conflicts = self.conflicts;
        self.conflicts = if end == End::Conflict { conflicts.saturating_add(1) } else { 0 };
        // Without a note at dequeue time, no event stems from an own write.
        let origin = self.origin.take().unwrap_or_else(|| Self::default().origin_of(causes));
        let made = mem::take(&mut self.made);
        let evidence = options.hot_loops.and_then(|limits| self.track.reconciled(now, origin, made, limits));
        self.expire(now, options);
        (conflicts, evidence)
    }

    fn expire(&mut self, now: Duration, options: MemoryOptions) {
        let limits = options.hot_loops.unwrap_or_default();
        self.track.expire(now, limits);
        self.ledger.expire(now.saturating_sub(limits.window));
    }

    fn is_empty(&self) -> bool {
        self.ledger.is_empty()
            && self.triggers.is_empty()
            && self.conflicts == 0
            && self.waits_since.is_none()
            && self.track.is_quiet()
    }
}

#[cfg(test)]
mod tests;
