//! The FIFO as a state machine without lock, task or clock.

use std::{cell::LazyCell, collections::HashSet, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashlink::LinkedHashMap;
use kube_core::Resource;
use watchkeeper_client::decode::Identity;

use super::{Delta, DeltaKind, Deltas, KnownObjects};
use crate::{
    Cached,
    key::{KeyRef, KeyText},
};

type Keys<'a> = HashSet<KeyRef<'a>, RandomState>;

/// A resourceVersion up to which nothing is missing, and its history epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Watermark {
    pub(super) version: Option<Arc<str>>,
    pub(super) epoch: u64,
}

/// A list to be queued.
pub(super) struct List<'a, K> {
    pub(super) objects: Vec<Cached<K>>,
    /// The objects that exist but could not be decoded.
    pub(super) kept: &'a [Identity],
    pub(super) version: Option<&'a str>,
    pub(super) is_new_epoch: bool,
}

/// The result of a pop.
pub(super) struct PoppedKeys<K> {
    pub(super) keys: Arc<[Deltas<K>]>,
    /// The watermark of the consumer once it has applied these keys.
    pub(super) watermark: Watermark,
}

/// The progress of the initial list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Population {
    /// The initial list was not queued yet.
    Awaited,
    /// The number of keys of the initial list that have not been processed.
    Popping(usize),
    Complete,
}

/// The capacity that an empty queue retains.
const RETAINED_CAPACITY: usize = 1024;

/// The state of the FIFO.
///
/// Invariants: each key is queued once; `queued_deltas` is the number of queued deltas; the watermarks of
/// queued keys do not decrease from front to back.
pub(super) struct FifoCore<K> {
    /// The queued keys, in the order of their first change.
    queue: LinkedHashMap<KeyText, Deltas<K>, RandomState>,
    queued_deltas: usize,
    /// The keys that were popped and are not finished.
    in_flight: Option<Arc<[Deltas<K>]>>,
    /// The watermark of a consumer that has applied everything so far.
    reached: Watermark,
    /// The watermark of the last finished batch.
    finished: Watermark,
    population: Population,
    is_closed: bool,
    /// Objects that are no longer queued, to be dropped outside of the lock.
    released: Vec<Cached<K>>,
}

impl<K: Resource + 'static> FifoCore<K> {
    pub(super) fn new() -> Self {
        Self {
            queue: new_queue(),
            queued_deltas: 0,
            in_flight: None,
            reached: Watermark::default(),
            finished: Watermark::default(),
            population: Population::Awaited,
            is_closed: false,
            released: Vec::new(),
        }
    }

    pub(super) fn queued_deltas(&self) -> usize {
        self.queued_deltas
    }

    pub(super) fn queued_keys(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn has_synced(&self) -> bool {
        self.population == Population::Complete
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns whether a pop would succeed: something is queued and nothing is in flight.
    pub(super) fn can_pop(&self) -> bool {
        self.in_flight.is_none() && (!self.queue.is_empty() || self.reached != self.finished)
    }

    /// Returns whether nothing will be popped any more.
    pub(super) fn is_finished(&self) -> bool {
        self.is_closed && self.in_flight.is_none() && !self.can_pop()
    }

    /// Returns the objects that were released since the last call.
    pub(super) fn take_released(&mut self) -> Vec<Cached<K>> {
        std::mem::take(&mut self.released)
    }

    /// Queues an added or updated object.
    pub(super) fn apply(&mut self, kind: DeltaKind, object: Cached<K>) {
        self.begin_unpopulated();
        let mark = version_of(&object);
        self.push(Delta { kind, object, is_initial: false, is_new_epoch: false });
        self.advance(mark);
    }

    /// Queues a deleted object. The deletion of an unknown object is dropped, but its version advances the
    /// watermark.
    pub(super) fn delete(&mut self, object: Cached<K>, known: &dyn KnownObjects<K>) {
        self.begin_unpopulated();
        let mark = version_of(&object);
        if self.is_of_interest(object.key_ref(), known) {
            let kind = DeltaKind::Deleted { final_state_unknown: false };
            self.push(Delta { kind, object, is_initial: false, is_new_epoch: false });
        } else {
            self.released.push(object);
        }
        self.advance(mark);
    }

    /// Queues the deletion of an object whose final state could not be decoded.
    pub(super) fn delete_unread(&mut self, key: &str, version: Option<&str>, known: &dyn KnownObjects<K>) {
        self.begin_unpopulated();
        if let Some(object) = self.last_state(key, known) {
            let kind = DeltaKind::Deleted { final_state_unknown: true };
            self.push(Delta { kind, object, is_initial: false, is_new_epoch: false });
        }
        self.advance(version.map(Arc::from));
    }

    /// Queues a list: a `Deleted` for each object that is queued, in flight or known but not listed, and a
    /// `Replaced` for each listed object.
    pub(super) fn replace(&mut self, list: List<'_, K>, known: &dyn KnownObjects<K>) {
        let List { objects, kept, version, is_new_epoch } = list;
        let is_initial = self.population == Population::Awaited;
        let gone = self.missing_from(&objects, kept, known);
        // Deletions first, so that a consumer that accounts for names or addresses frees them before it
        // allocates new ones.
        for object in gone {
            let kind = DeltaKind::Deleted { final_state_unknown: true };
            self.push(Delta { kind, object, is_initial, is_new_epoch });
        }
        self.queue.reserve(objects.len());
        for object in objects {
            self.push(Delta { kind: DeltaKind::Replaced, object, is_initial, is_new_epoch });
        }
        if is_initial {
            let keys = self.queue.len();
            self.queue.values_mut().for_each(|deltas| deltas.counts_for_sync = true);
            self.population = if keys == 0 { Population::Complete } else { Population::Popping(keys) };
        }
        if is_new_epoch {
            self.reached.epoch += 1;
        }
        self.advance(version.map(Arc::from));
    }

    /// Queues a `Sync` for each known object that is not queued.
    pub(super) fn resync(&mut self, known: &dyn KnownObjects<K>) {
        let in_flight = self.in_flight_keys();
        let mut quiet = Vec::new();
        known.visit_keys(&mut |key| {
            let key_ref = KeyRef::split(key);
            if !in_flight.contains(&key_ref) && !self.is_queued(key_ref) {
                quiet.extend(known.get(key));
            }
        });
        // Keys in flight count as applied.
        let applied = self
            .in_flight_deltas()
            .map(Deltas::newest)
            .filter(|newest| !newest.is_deletion() && !self.is_queued(newest.object.key_ref()));
        quiet.extend(applied.map(|newest| newest.object.clone()));
        for object in quiet {
            self.push(Delta { kind: DeltaKind::Sync, object, is_initial: false, is_new_epoch: false });
        }
    }

    /// Advances the watermark without a delta.
    pub(super) fn bookmark(&mut self, version: &str) {
        self.advance(Some(Arc::from(version)));
    }

    /// Pops up to `max` keys, or none if only the watermark advanced. Returns `None` while another batch is
    /// in flight.
    ///
    /// A batch does not extend past the end of the initial list.
    pub(super) fn pop(&mut self, max: usize) -> Option<PoppedKeys<K>> {
        if !self.can_pop() {
            return None;
        }
        let is_of_first_list = self.queue.front().is_some_and(|(_, deltas)| deltas.counts_for_sync);
        let mut keys = Vec::with_capacity(max.min(self.queue.len()));
        while keys.len() < max.max(1)
            && self.queue.front().is_some_and(|(_, deltas)| deltas.counts_for_sync == is_of_first_list)
        {
            keys.extend(self.queue.pop_front().map(|(_, deltas)| deltas));
        }
        if self.queue.is_empty() && self.queue.capacity() > RETAINED_CAPACITY {
            // The memory for a list of the whole collection is not needed again soon.
            self.queue = new_queue();
        }
        self.queued_deltas -= keys.iter().map(Deltas::len).sum::<usize>();
        let keys: Arc<[Deltas<K>]> = keys.into();
        let watermark =
            self.queue.front().map_or(&self.reached, |(_, deltas)| &deltas.complete_before).clone();
        self.in_flight = Some(Arc::clone(&keys));
        Some(PoppedKeys { keys, watermark })
    }

    /// Finishes the batch in flight, which was applied.
    pub(super) fn done(&mut self, watermark: Watermark) {
        let Some(keys) = self.in_flight.take() else { return };
        self.finished = watermark;
        if let Population::Popping(left) = self.population {
            let finished = keys.iter().filter(|deltas| deltas.counts_for_sync).count();
            let left = left.saturating_sub(finished);
            self.population = if left == 0 { Population::Complete } else { Population::Popping(left) };
        }
    }

    /// Requeues the batch in flight, which may not have been applied, at the front.
    pub(super) fn requeue(&mut self) {
        let Some(keys) = self.in_flight.take() else { return };
        for mut deltas in keys.iter().rev().cloned() {
            self.queued_deltas += deltas.len();
            let key = KeyText::of(deltas.first.object.key_ref());
            if let Some(later) = self.queue.remove(&key) {
                deltas.append(later);
            }
            self.queue.insert(key.clone(), deltas);
            self.queue.to_front(&key);
        }
    }

    /// Returns the last state of each object that is queued, in flight or known but not listed, unless that
    /// is a deletion. An object that the list could not decode is not missing if it has the same uid.
    fn missing_from(
        &self,
        objects: &[Cached<K>],
        kept: &[Identity],
        known: &dyn KnownObjects<K>,
    ) -> Vec<Cached<K>> {
        // Lazy, because nothing can be missing from the initial list.
        let listed: LazyCell<Keys<'_>, _> =
            LazyCell::new(|| objects.iter().map(|object| object.key_ref()).collect());
        let in_flight = self.in_flight_keys();
        // The queued state of a key is newer than the one in flight.
        let only_in_flight =
            self.in_flight_deltas().filter(|deltas| !self.is_queued(deltas.first.object.key_ref()));
        let queued = self.queue.values();
        let mut gone: Vec<Cached<K>> = queued
            .chain(only_in_flight)
            .map(Deltas::newest)
            .filter(|newest| !newest.is_deletion() && !listed.contains(&newest.object.key_ref()))
            .map(|newest| newest.object.clone())
            .collect();
        known.visit_keys(&mut |key| {
            let key_ref = KeyRef::split(key);
            let is_pending = in_flight.contains(&key_ref) || self.is_queued(key_ref);
            if !listed.contains(&key_ref) && !is_pending {
                gone.extend(known.get(key));
            }
        });
        let kept: HashMap<&str, &Identity, RandomState> =
            kept.iter().map(|identity| (identity.key(), identity)).collect();
        if !kept.is_empty() {
            gone.retain(|object| {
                let key = object.key_ref().to_string();
                kept.get(&*key).is_none_or(|identity| is_other_uid(object, identity))
            });
        }
        gone
    }

    /// Returns whether the object is queued, or is in flight or known and not deleted.
    fn is_of_interest(&self, key: KeyRef<'_>, known: &dyn KnownObjects<K>) -> bool {
        let text = KeyText::of(key);
        if self.queue.contains_key(&text) {
            return true;
        }
        if let Some(newest) = self.in_flight_newest(key) {
            return !newest.is_deletion();
        }
        known.contains(text.as_str())
    }

    /// Returns the last state of an object, unless it is deleted.
    fn last_state(&self, key: &str, known: &dyn KnownObjects<K>) -> Option<Cached<K>> {
        let key_ref = KeyRef::split(key);
        let queued = self.queue.get(&KeyText::of(key_ref)).map(Deltas::newest);
        let newest = queued.or_else(|| self.in_flight_newest(key_ref));
        match newest {
            Some(newest) => (!newest.is_deletion()).then(|| newest.object.clone()),
            None => known.get(key),
        }
    }

    fn is_queued(&self, key: KeyRef<'_>) -> bool {
        // A queue is empty most of the time, and then no hash is needed.
        !self.queue.is_empty() && self.queue.contains_key(&KeyText::of(key))
    }

    fn in_flight_deltas(&self) -> impl Iterator<Item = &Deltas<K>> {
        self.in_flight.iter().flat_map(|keys| keys.iter())
    }

    fn in_flight_keys(&self) -> Keys<'_> {
        self.in_flight_deltas().map(|deltas| deltas.first.object.key_ref()).collect()
    }

    fn in_flight_newest(&self, key: KeyRef<'_>) -> Option<&Delta<K>> {
        self.in_flight_deltas().find(|deltas| deltas.first.object.key_ref() == key).map(Deltas::newest)
    }

    fn push(&mut self, delta: Delta<K>) {
        let key = KeyText::of(delta.object.key_ref());
        let Some(deltas) = self.queue.get_mut(&key) else {
            self.queue.insert(key, Deltas::one(delta, self.reached.clone()));
            self.queued_deltas += 1;
            return;
        };
        match (deltas.newest().kind, delta.kind) {
            // Of two consecutive deletions the more informative one is kept: the later one, unless its final
            // state is unknown.
            (DeltaKind::Deleted { .. }, DeltaKind::Deleted { final_state_unknown: true }) => {
                self.released.push(delta.object);
            }
            (DeltaKind::Deleted { .. }, DeltaKind::Deleted { .. }) => {
                let replaced = std::mem::replace(deltas.newest_mut(), delta);
                self.released.push(replaced.object);
            }
            _ => {
                deltas.push(delta);
                self.queued_deltas += 1;
            }
        }
    }

    fn advance(&mut self, version: Option<Arc<str>>) {
        if version.is_some() {
            self.reached.version = version;
        }
    }

    /// Records that the first change was not a list, so that no initial list has to be waited for.
    fn begin_unpopulated(&mut self) {
        if self.population == Population::Awaited {
            self.population = Population::Complete;
        }
    }
}

fn new_queue<K>() -> LinkedHashMap<KeyText, Deltas<K>, RandomState> {
    LinkedHashMap::with_hasher(RandomState::default())
}

/// Returns whether both have a uid and the uids differ.
fn is_other_uid<K: Resource>(object: &Cached<K>, identity: &Identity) -> bool {
    matches!((object.metadata().uid(), identity.uid()), (Some(one), Some(other)) if one != other)
}

fn version_of<K: Resource>(object: &Cached<K>) -> Option<Arc<str>> {
    object.metadata().resource_version().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::delta_fifo::NothingKnown;

    #[test]
    fn a_queue_that_was_long_frees_its_memory() {
        let object = |number: usize| {
            let mut object = ConfigMap::default();
            object.metadata.name = Some(number.to_string());
            Cached::from(object)
        };
        let mut core = FifoCore::new();
        let objects = (0..5_000).map(object).collect();
        core.replace(List { objects, kept: &[], version: None, is_new_epoch: false }, &NothingKnown);
        assert!(core.queue.capacity() >= 5_000);
        while let Some(popped) = core.pop(1_000) {
            core.done(popped.watermark);
        }
        assert!(core.queue.capacity() <= RETAINED_CAPACITY, "{}", core.queue.capacity());
        core.apply(DeltaKind::Added, object(0));
        assert!(core.is_queued(KeyRef::split("0")));
    }
}
