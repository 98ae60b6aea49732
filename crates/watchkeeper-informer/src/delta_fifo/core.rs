//! The FIFO as a state machine: no lock, no waiting, no clock.

use std::{cell::LazyCell, collections::HashSet, fmt::Write as _, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use kube_core::Resource;
use watchkeeper_client::decode::Identity;

use super::{Delta, DeltaKind, Deltas, KnownObjects};
use crate::{key::KeyRef, keyed_queue::KeyedQueue};

type Keys<'a> = HashSet<KeyRef<'a>, RandomState>;

/// A resourceVersion that everything up to which has been seen, and which beginning of the server's history
/// it counts from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub(super) version: Option<Arc<str>>,
    pub(super) epoch: u64,
}

/// A list, as the queue takes it.
pub(super) struct List<'a, K> {
    pub(super) objects: Vec<Arc<K>>,
    /// What exists and could not be read.
    pub(super) kept: &'a [Identity],
    pub(super) version: Option<&'a str>,
    pub(super) is_new_epoch: bool,
}

/// What a pop hands out.
pub(super) struct Batch<K> {
    pub(super) keys: Arc<[Deltas<K>]>,
    /// What the consumer is complete up to once it has applied the batch.
    pub(super) watermark: Mark,
}

/// How far the first list has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Population {
    /// Nothing has been put in yet.
    Awaited,
    /// Keys of the first list that are not finished.
    Popping(usize),
    Complete,
}

/// Invariants: a key is in line once; `queued_deltas` is the number of deltas in line; the marks of the keys
/// in line do not get older from front to back.
pub(super) struct Core<K> {
    queue: KeyedQueue<Deltas<K>>,
    queued_deltas: usize,
    /// What was handed out and not yet finished.
    in_flight: Option<Arc<[Deltas<K>]>>,
    /// What a consumer that has applied everything so far is complete up to.
    mark: Mark,
    /// The last watermark that was handed out.
    marked: Mark,
    population: Population,
    is_closed: bool,
    /// Objects that were let go of, to be dropped where nothing is locked.
    released: Vec<Arc<K>>,
    key_text: String,
}

impl<K: Resource + 'static> Core<K> {
    pub(super) fn new() -> Self {
        Self {
            queue: KeyedQueue::new(),
            queued_deltas: 0,
            in_flight: None,
            mark: Mark::default(),
            marked: Mark::default(),
            population: Population::Awaited,
            is_closed: false,
            released: Vec::new(),
            key_text: String::new(),
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

    /// True when there is something to pop and nothing in flight.
    pub(super) fn can_pop(&self) -> bool {
        self.in_flight.is_none() && (!self.queue.is_empty() || self.mark != self.marked)
    }

    /// True when nothing will ever be popped again.
    pub(super) fn is_finished(&self) -> bool {
        self.is_closed && self.in_flight.is_none() && !self.can_pop()
    }

    /// Takes what was let go of since the last call.
    pub(super) fn take_released(&mut self) -> Vec<Arc<K>> {
        std::mem::take(&mut self.released)
    }

    /// The server said that an object was added or changed.
    pub(super) fn apply(&mut self, kind: DeltaKind, object: Arc<K>) {
        self.begin_unpopulated();
        let mark = version_of(&object);
        self.push(Delta { kind, object, is_initial: false, is_new_epoch: false });
        self.advance(mark);
    }

    /// The server said that an object was deleted. One that nobody knows is not worth a delta, but its
    /// version still counts.
    pub(super) fn delete(&mut self, object: Arc<K>, known: &dyn KnownObjects<K>) {
        self.begin_unpopulated();
        let mark = version_of(&object);
        if self.is_of_interest(KeyRef::of(&*object), known) {
            let kind = DeltaKind::Deleted { final_state_unknown: false };
            self.push(Delta { kind, object, is_initial: false, is_new_epoch: false });
        } else {
            self.released.push(object);
        }
        self.advance(mark);
    }

    /// An object was deleted whose final state cannot be read.
    pub(super) fn delete_unread(&mut self, key: &str, version: Option<&str>, known: &dyn KnownObjects<K>) {
        self.begin_unpopulated();
        if let Some(object) = self.last_state(key, known) {
            let kind = DeltaKind::Deleted { final_state_unknown: true };
            self.push(Delta { kind, object, is_initial: false, is_new_epoch: false });
        }
        self.advance(version.map(Arc::from));
    }

    /// A list: what is in line, in flight or known and not in the list is deleted, once; each object is
    /// `Replaced`.
    pub(super) fn replace(&mut self, list: List<'_, K>, known: &dyn KnownObjects<K>) {
        let List { objects, kept, version, is_new_epoch } = list;
        let is_initial = self.population == Population::Awaited;
        let gone = self.missing_from(&objects, kept, known);
        // First what is gone: whoever accounts for names or addresses hears of what was freed before what is
        // new.
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
            self.queue.iter_mut().for_each(|deltas| deltas.counts_for_sync = true);
            self.population = if keys == 0 { Population::Complete } else { Population::Popping(keys) };
        }
        if is_new_epoch {
            self.mark.epoch += 1;
        }
        self.advance(version.map(Arc::from));
    }

    /// `Sync` for each object of the cache that has nothing in line.
    pub(super) fn resync(&mut self, known: &dyn KnownObjects<K>) {
        let in_flight = self.in_flight_keys();
        let mut quiet = Vec::new();
        known.visit_keys(&mut |key| {
            let key_ref = KeyRef::split(key);
            if !in_flight.contains(&key_ref) && !self.queue.contains(key_ref) {
                quiet.extend(known.get(key));
            }
        });
        // What is in flight is, as far as the queue can tell, in the cache already.
        let applied = self
            .in_flight_deltas()
            .map(Deltas::newest)
            .filter(|newest| !newest.is_deletion() && !self.queue.contains(KeyRef::of(&*newest.object)));
        quiet.extend(applied.map(|newest| Arc::clone(&newest.object)));
        for object in quiet {
            self.push(Delta { kind: DeltaKind::Sync, object, is_initial: false, is_new_epoch: false });
        }
    }

    /// Nothing of interest happened up to this version.
    pub(super) fn bookmark(&mut self, version: &str) {
        self.advance(Some(Arc::from(version)));
    }

    /// Takes up to `max` keys out of the line, or none and a watermark when only that has moved. Nothing
    /// while another batch is in flight.
    ///
    /// A batch never spans the end of the first list.
    pub(super) fn pop(&mut self, max: usize) -> Option<Batch<K>> {
        if !self.can_pop() {
            return None;
        }
        let is_of_first_list = self.queue.front().is_some_and(|deltas| deltas.counts_for_sync);
        let mut keys = Vec::with_capacity(max.min(self.queue.len()));
        while keys.len() < max.max(1)
            && self.queue.front().is_some_and(|deltas| deltas.counts_for_sync == is_of_first_list)
        {
            keys.extend(self.queue.pop_front());
        }
        self.queued_deltas -= keys.iter().map(Deltas::len).sum::<usize>();
        let keys: Arc<[Deltas<K>]> = keys.into();
        let watermark = self.queue.front().map_or(&self.mark, |deltas| &deltas.complete_before).clone();
        self.in_flight = Some(Arc::clone(&keys));
        Some(Batch { keys, watermark })
    }

    /// The batch in flight has been applied.
    pub(super) fn done(&mut self, watermark: Mark) {
        let Some(keys) = self.in_flight.take() else { return };
        self.marked = watermark;
        if let Population::Popping(left) = self.population {
            let finished = keys.iter().filter(|deltas| deltas.counts_for_sync).count();
            let left = left.saturating_sub(finished);
            self.population = if left == 0 { Population::Complete } else { Population::Popping(left) };
        }
    }

    /// The batch in flight has not been applied, or not known to have been: it goes back to where it was.
    pub(super) fn put_back(&mut self) {
        let Some(keys) = self.in_flight.take() else { return };
        for mut deltas in keys.iter().rev().cloned() {
            self.queued_deltas += deltas.len();
            if let Some(later) = self.queue.remove(KeyRef::of(&*deltas.first.object)) {
                deltas.append(later);
            }
            self.queue.push_front(deltas);
        }
    }

    /// The objects a list does not have: their last state in line, in flight or in the cache, unless that is
    /// a deletion already. What the list could not read is not missing from it, if it is the same
    /// incarnation.
    fn missing_from(
        &self,
        objects: &[Arc<K>],
        kept: &[Identity],
        known: &dyn KnownObjects<K>,
    ) -> Vec<Arc<K>> {
        // Only made if there is something that could be missing: the first list has nothing before it.
        let listed: LazyCell<Keys<'_>, _> =
            LazyCell::new(|| objects.iter().map(|object| KeyRef::of(&**object)).collect());
        let in_flight = self.in_flight_keys();
        // A key that is in line and in flight counts as it stands in line: that is the later.
        let only_in_flight =
            self.in_flight_deltas().filter(|deltas| !self.queue.contains(KeyRef::of(&*deltas.first.object)));
        let in_line = self.queue.iter();
        let mut gone: Vec<Arc<K>> = in_line
            .chain(only_in_flight)
            .map(Deltas::newest)
            .filter(|newest| !newest.is_deletion() && !listed.contains(&KeyRef::of(&*newest.object)))
            .map(|newest| Arc::clone(&newest.object))
            .collect();
        known.visit_keys(&mut |key| {
            let key_ref = KeyRef::split(key);
            let is_in_hand = in_flight.contains(&key_ref) || self.queue.contains(key_ref);
            if !listed.contains(&key_ref) && !is_in_hand {
                gone.extend(known.get(key));
            }
        });
        let kept: HashMap<&str, &Identity, RandomState> =
            kept.iter().map(|identity| (identity.key(), identity)).collect();
        if !kept.is_empty() {
            gone.retain(|object| {
                let key = KeyRef::of(&**object).to_string();
                kept.get(&*key).is_none_or(|identity| is_other_uid(&**object, identity))
            });
        }
        gone
    }

    /// True when somebody has heard of the object, or will, and not that it is gone.
    fn is_of_interest(&mut self, key: KeyRef<'_>, known: &dyn KnownObjects<K>) -> bool {
        if self.queue.contains(key) {
            return true;
        }
        if let Some(newest) = self.in_flight_newest(key) {
            return !newest.is_deletion();
        }
        self.key_text.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.key_text, "{key}");
        known.contains(&self.key_text)
    }

    /// The object as it was last, unless it is gone.
    fn last_state(&mut self, key: &str, known: &dyn KnownObjects<K>) -> Option<Arc<K>> {
        let key_ref = KeyRef::split(key);
        let newest = match self.queue.get_mut(key_ref) {
            Some(deltas) => Some(deltas.newest().clone()),
            None => self.in_flight_newest(key_ref).cloned(),
        };
        match newest {
            Some(newest) => (!newest.is_deletion()).then_some(newest.object),
            None => known.get(key),
        }
    }

    fn in_flight_deltas(&self) -> impl Iterator<Item = &Deltas<K>> {
        self.in_flight.iter().flat_map(|keys| keys.iter())
    }

    fn in_flight_keys(&self) -> Keys<'_> {
        self.in_flight_deltas().map(|deltas| KeyRef::of(&*deltas.first.object)).collect()
    }

    fn in_flight_newest(&self, key: KeyRef<'_>) -> Option<&Delta<K>> {
        self.in_flight_deltas().find(|deltas| KeyRef::of(&*deltas.first.object) == key).map(Deltas::newest)
    }

    fn push(&mut self, delta: Delta<K>) {
        let Some(deltas) = self.queue.get_mut(KeyRef::of(&*delta.object)) else {
            self.queue.push_back(Deltas::one(delta, self.mark.clone()));
            self.queued_deltas += 1;
            return;
        };
        match (deltas.newest().kind, delta.kind) {
            // Of two deletions in a row the one that knows more is kept: the later, unless it only knows that
            // the object is gone.
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
            self.mark.version = version;
        }
    }

    /// Something other than a list came first: there is no first list to wait for.
    fn begin_unpopulated(&mut self) {
        if self.population == Population::Awaited {
            self.population = Population::Complete;
        }
    }
}

/// True when both say who they are, and are not the same.
fn is_other_uid<K: Resource>(object: &K, identity: &Identity) -> bool {
    let uid = object.meta().uid.as_deref().filter(|uid| !uid.is_empty());
    matches!((uid, identity.uid()), (Some(one), Some(other)) if one != other)
}

fn version_of<K: Resource>(object: &Arc<K>) -> Option<Arc<str>> {
    let version = object.meta().resource_version.as_deref()?;
    (!version.is_empty()).then(|| Arc::from(version))
}
