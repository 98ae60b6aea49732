//! The contents behind their locks: who may write when, and what happens outside.

use std::sync::Arc;

use super::{
    change::{Applied, Batch, Change, Prepared, Replaced},
    definition::Definition,
    error::{IndexError, StoreError},
    slot_set::SlotSet,
    snapshot::Snapshot,
    state::State,
    sync::{Mutex, MutexGuard, RwLock},
};
use crate::{Object, ObjectKey, ResourceVersion};

/// Up to this many changes are made in place; more of them would keep readers waiting and are made on a copy.
const FEW_CHANGES: usize = 64;
/// Up to this many objects are collected under the read lock; more of them would keep the writer waiting.
const FEW_OBJECTS: usize = 256;
/// Objects that are indexed, for a new index, under one hold of the lock.
const INDEXED_AT_ONCE: usize = 128;

type Changes<K> = Batch<Vec<Prepared<K>>>;

/// What the handles of a store share.
pub(super) struct Shared<K> {
    /// Held by whoever writes, so that a copy can be changed at leisure and put in its place. Never held while the
    /// user's code runs.
    writing: Mutex<()>,
    /// Locked for writing only for a few changes, or to put another state in its place.
    state: RwLock<Arc<State<K>>>,
}

impl<K: Object> Shared<K> {
    pub(super) fn new() -> Self {
        Self { writing: Mutex::new(()), state: RwLock::new(Arc::new(State::new())) }
    }

    pub(super) fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(Arc::clone(&self.state.read()))
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Arc<K>> {
        self.state.read().get(key)
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.state.read().contains(key)
    }

    pub(super) fn len(&self) -> usize {
        self.state.read().len()
    }

    pub(super) fn resource_version(&self) -> Option<ResourceVersion> {
        self.state.read().resource_version.clone()
    }

    pub(super) fn index(&self, name: &str) -> Result<(usize, Arc<Definition<K>>), IndexError> {
        let state = self.state.read();
        let number = state.index_number(name)?;
        Ok((number, Arc::clone(&state.definitions[number])))
    }

    pub(super) fn count(&self, index: usize, value: &str) -> usize {
        self.state.read().indexed(index, value).map_or(0, SlotSet::len)
    }

    pub(super) fn indexed(&self, index: usize, value: &str) -> Vec<Arc<K>> {
        self.read_indexed(index, value, |state| state.indexed_objects(index, value))
    }

    pub(super) fn indexed_keys(&self, index: usize, value: &str) -> Vec<ObjectKey> {
        self.read_indexed(index, value, |state| state.indexed_keys(index, value))
    }

    /// Reads what has a value: under the lock when that is not much, and otherwise from a snapshot.
    fn read_indexed<R>(&self, index: usize, value: &str, read: impl FnOnce(&State<K>) -> R) -> R {
        let state = self.state.read();
        if state.indexed(index, value).map_or(0, SlotSet::len) <= FEW_OBJECTS {
            return read(&state);
        }
        let snapshot = Arc::clone(&state);
        drop(state);
        read(&snapshot)
    }

    pub(super) fn apply(
        &self,
        batch: Batch<Vec<Prepared<K>>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<Applied<K>, StoreError> {
        let size = batch.changes.len();
        let check = |state: &State<K>| state.check_version(resource_version);
        self.write(batch, size, check, |state, changes| {
            let outcomes = changes.into_iter().map(|change| state.apply(change)).collect();
            state.advance_to(resource_version);
            Applied { outcomes, resource_version: state.resource_version.clone() }
        })
    }

    /// As [`apply`](Self::apply), if the index values of the batch are complete; it runs no code of the user's. A
    /// batch that an index was added behind the back of comes back untouched.
    pub(super) fn apply_indexed(
        &self,
        batch: Changes<K>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<Result<Applied<K>, StoreError>, Changes<K>> {
        let writing = self.writing.lock();
        if !batch.is_indexed_by(&self.state.read().definitions) {
            return Err(batch);
        }
        let size = batch.changes.len();
        let check = |state: &State<K>| {
            if is_new_epoch { Ok(()) } else { state.check_version(resource_version) }
        };
        Ok(self.write_in_turn(writing, batch, size, check, |state, changes| {
            if is_new_epoch {
                state.begin_epoch();
            }
            let outcomes = changes.into_iter().map(|change| state.apply(change)).collect();
            state.advance_to(resource_version);
            Applied { outcomes, resource_version: state.resource_version.clone() }
        }))
    }

    /// Computes what is missing of the index values of a batch. Runs the user's code: hold no lock.
    pub(super) fn index_batch(&self, batch: &mut Batch<Vec<Prepared<K>>>) {
        let definitions = Arc::clone(&self.state.read().definitions);
        batch.index(&definitions);
    }

    /// One change, after which the store's version is `newer` if it is newer.
    pub(super) fn apply_one(
        &self,
        change: Change<K>,
        newer: Option<&ResourceVersion>,
    ) -> Result<Option<Arc<K>>, StoreError> {
        let work = |state: &mut State<K>, [change]: [Prepared<K>; 1]| {
            let outcome = state.apply(change);
            if state.check_version(newer).is_ok() {
                state.advance_to(newer);
            }
            outcome
        };
        Ok(self.write(Batch::one(change), 1, |_| Ok(()), work)?.into_old())
    }

    pub(super) fn replace(
        &self,
        batch: Batch<Vec<Prepared<K>>>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<Replaced<K>, StoreError> {
        // What is to be removed counts as well, and how much that is shows only on the way.
        let size = batch.changes.len().max(self.len());
        let check = |state: &State<K>| {
            if is_new_epoch { Ok(()) } else { state.check_version(resource_version) }
        };
        self.write(batch, size, check, |state, changes| {
            if is_new_epoch {
                state.begin_epoch();
            }
            let (outcomes, deleted) = state.replace(changes);
            state.advance_to(resource_version);
            Replaced { outcomes, deleted, resource_version: state.resource_version.clone() }
        })
    }

    /// Registers an index, then has every object that was there before go through it, a few at a time.
    pub(super) fn add_index(&self, definition: &Arc<Definition<K>>) -> Result<usize, IndexError> {
        let (number, before) = {
            let _writing = self.writing.lock();
            let mut state = self.state.write();
            if state.definitions.iter().any(|other| other.name == definition.name) {
                return Err(IndexError::Duplicate { name: definition.name.to_string() });
            }
            // From here on every write indexes its own objects. What is left to do is what is in this snapshot.
            let before = Snapshot::new(Arc::clone(&state));
            (Arc::make_mut(&mut state).add_index(Arc::clone(definition)), before)
        };
        let mut objects = before.iter();
        loop {
            let some: Vec<_> = objects
                .by_ref()
                .take(INDEXED_AT_ONCE)
                .map(|object| (definition.values(object), object))
                .collect();
            if some.is_empty() {
                break;
            }
            self.in_place(|state| {
                // An object that was replaced meanwhile was indexed when it was.
                for (values, object) in &some {
                    state.index_object(number, object, values);
                }
            });
        }
        self.in_place(|state| state.complete_index(number));
        Ok(number)
    }

    fn in_place(&self, work: impl FnOnce(&mut State<K>)) {
        let _writing = self.writing.lock();
        work(Arc::make_mut(&mut self.state.write()));
    }

    /// Makes a write of this size, in place or on a copy, unless `check` refuses it.
    ///
    /// What `work` takes out of the state it returns, and what is refused goes after the locks: nothing of the user's is
    /// dropped under them.
    fn write<C: AsMut<[Prepared<K>]>, R>(
        &self,
        mut batch: Batch<C>,
        size: usize,
        check: impl FnOnce(&State<K>) -> Result<(), StoreError>,
        work: impl FnOnce(&mut State<K>, C) -> R,
    ) -> Result<R, StoreError> {
        let writing = self.when_indexed(&mut batch);
        self.write_in_turn(writing, batch, size, check, work)
    }

    fn write_in_turn<C: AsMut<[Prepared<K>]>, R>(
        &self,
        writing: MutexGuard<'_, ()>,
        mut batch: Batch<C>,
        size: usize,
        check: impl FnOnce(&State<K>) -> Result<(), StoreError>,
        work: impl FnOnce(&mut State<K>, C) -> R,
    ) -> Result<R, StoreError> {
        // Let go of before the batch is, should that be refused.
        let writing = writing;
        let before = {
            let state = self.state.read();
            state.check_room(batch.changes.as_mut().len())?;
            check(&state)?;
            (size > FEW_CHANGES || state.grows_with(size)).then(|| Arc::clone(&state))
        };
        let Some(mut after) = before else {
            return Ok(work(Arc::make_mut(&mut self.state.write()), batch.changes));
        };
        let done = work(Arc::make_mut(&mut after), batch.changes);
        let before = std::mem::replace(&mut *self.state.write(), after);
        drop(writing);
        drop(before);
        Ok(done)
    }

    /// Waits for the turn to write, with the index values of the batch at hand by then. They are computed without the
    /// turn; an index that was added meanwhile means computing its values and waiting again.
    fn when_indexed<C: AsMut<[Prepared<K>]>>(&self, batch: &mut Batch<C>) -> MutexGuard<'_, ()> {
        loop {
            let definitions = Arc::clone(&self.state.read().definitions);
            batch.index(&definitions);
            let writing = self.writing.lock();
            if batch.is_indexed_by(&self.state.read().definitions) {
                return writing;
            }
        }
    }
}
