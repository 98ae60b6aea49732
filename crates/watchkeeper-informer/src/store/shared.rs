//! The contents of a store behind their locks: the order of writers, and the work that runs outside the locks.

use std::sync::Arc;

use super::{
    contents::Contents,
    error::{IndexError, StoreError},
    index::IndexFunction,
    index_table::SlotSet,
    op::{ApplyResult, IndexedOp, OpBatch, ReplaceResult, StoreOp},
    snapshot::Snapshot,
};
use crate::{
    Cached, Object, ObjectKey, ResourceVersion,
    sync::{Mutex, MutexGuard, RwLock},
};

/// The largest number of operations that are applied in place. A larger write would block readers, so it is made on a
/// copy.
const MAX_IN_PLACE: usize = 64;
/// The largest number of objects that are collected under the read lock. A larger read would block the writer.
const MAX_READ_LOCKED: usize = 256;
/// The number of objects that are added to a new index under one write lock.
const INDEX_CHUNK: usize = 128;

pub(super) type Batch<K> = OpBatch<Vec<IndexedOp<K>>>;

/// The state that the handles of a store share.
pub(super) struct Shared<K> {
    /// Held by the writer, so that a copy of the contents can be changed and then installed. Never held while user code
    /// runs.
    write_lock: Mutex<()>,
    /// Locked for writing only to apply a few operations, or to install other contents.
    contents: RwLock<Arc<Contents<K>>>,
}

impl<K: Object> Shared<K> {
    pub(super) fn new() -> Self {
        Self { write_lock: Mutex::new(()), contents: RwLock::new(Arc::new(Contents::new())) }
    }

    pub(super) fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(Arc::clone(&self.contents.read()))
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Cached<K>> {
        self.contents.read().get(key).cloned()
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.contents.read().contains(key)
    }

    pub(super) fn len(&self) -> usize {
        self.contents.read().len()
    }

    pub(super) fn resource_version(&self) -> Option<ResourceVersion> {
        self.contents.read().resource_version.clone()
    }

    pub(super) fn index(&self, name: &str) -> Result<(usize, Arc<IndexFunction<K>>), IndexError> {
        let contents = self.contents.read();
        let number = contents.index_number(name)?;
        Ok((number, Arc::clone(&contents.functions[number])))
    }

    pub(super) fn count(&self, index: usize, value: &str) -> usize {
        self.contents.read().indexed_slots(index, value).map_or(0, SlotSet::len)
    }

    pub(super) fn indexed(&self, index: usize, value: &str) -> Vec<Cached<K>> {
        self.read_indexed(index, value, |contents| contents.indexed(index, value).cloned().collect())
    }

    pub(super) fn indexed_keys(&self, index: usize, value: &str) -> Vec<ObjectKey> {
        self.read_indexed(index, value, |contents| contents.indexed_keys(index, value))
    }

    /// Reads the objects with a value under the lock if they are few, and from a snapshot otherwise.
    fn read_indexed<R>(&self, index: usize, value: &str, read: impl FnOnce(&Contents<K>) -> R) -> R {
        let contents = self.contents.read();
        if contents.indexed_slots(index, value).map_or(0, SlotSet::len) <= MAX_READ_LOCKED {
            return read(&contents);
        }
        let snapshot = Arc::clone(&contents);
        drop(contents);
        read(&snapshot)
    }

    pub(super) fn apply(
        &self,
        mut batch: Batch<K>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<ApplyResult<K>, StoreError> {
        let guard = self.lock_indexed(&mut batch);
        self.apply_locked(guard, batch, resource_version, false)
    }

    /// Applies a batch whose index values are complete, without running user code. If an index was added since they were
    /// computed, returns the batch unchanged as the outer error.
    pub(super) fn apply_indexed(
        &self,
        batch: Batch<K>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<Result<ApplyResult<K>, StoreError>, Batch<K>> {
        let guard = self.write_lock.lock();
        if !batch.is_indexed_by(&self.contents.read().functions) {
            return Err(batch);
        }
        Ok(self.apply_locked(guard, batch, resource_version, is_new_epoch))
    }

    fn apply_locked(
        &self,
        guard: MutexGuard<'_, ()>,
        batch: Batch<K>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<ApplyResult<K>, StoreError> {
        let size = batch.ops.len();
        let check = |contents: &Contents<K>| check_version(contents, resource_version, is_new_epoch);
        self.write_locked(guard, batch, size, check, |contents, ops| {
            if is_new_epoch {
                contents.begin_epoch();
            }
            let results = ops.into_iter().map(|op| contents.apply(op)).collect();
            contents.advance_to(resource_version);
            ApplyResult { results, resource_version: contents.resource_version.clone() }
        })
    }

    /// Computes the missing index values of a batch. Runs user code, so no lock may be held.
    pub(super) fn index_batch(&self, batch: &mut Batch<K>) {
        let functions = Arc::clone(&self.contents.read().functions);
        batch.index(&functions);
    }

    /// Applies one operation, and advances the store's resourceVersion to `version` if that is newer.
    pub(super) fn apply_one(
        &self,
        op: StoreOp<K>,
        version: Option<&ResourceVersion>,
    ) -> Result<Option<Cached<K>>, StoreError> {
        let mut batch = OpBatch::one(op);
        let guard = self.lock_indexed(&mut batch);
        let write = |contents: &mut Contents<K>, [op]: [IndexedOp<K>; 1]| {
            let result = contents.apply(op);
            if contents.check_version(version).is_ok() {
                contents.advance_to(version);
            }
            result
        };
        Ok(self.write_locked(guard, batch, 1, |_| Ok(()), write)?.into_old())
    }

    pub(super) fn replace(
        &self,
        mut batch: Batch<K>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<ReplaceResult<K>, StoreError> {
        // Removals count too. Their number is known only at the end, and is at most that of the stored objects.
        let size = batch.ops.len().max(self.len());
        let check = |contents: &Contents<K>| check_version(contents, resource_version, is_new_epoch);
        let guard = self.lock_indexed(&mut batch);
        self.write_locked(guard, batch, size, check, |contents, ops| {
            if is_new_epoch {
                contents.begin_epoch();
            }
            let (results, deleted) = contents.replace(ops);
            contents.advance_to(resource_version);
            ReplaceResult { results, deleted, resource_version: contents.resource_version.clone() }
        })
    }

    /// Adds an index, then indexes the objects that were stored before, a few at a time.
    pub(super) fn add_index(&self, function: &Arc<IndexFunction<K>>) -> Result<usize, IndexError> {
        let (number, before) = {
            let _guard = self.write_lock.lock();
            let mut contents = self.contents.write();
            if contents.functions.iter().any(|other| other.name == function.name) {
                return Err(IndexError::Duplicate { name: function.name.to_string() });
            }
            // From here on every write indexes its own objects. The objects of this snapshot remain.
            let before = Snapshot::new(Arc::clone(&contents));
            (Arc::make_mut(&mut contents).add_index(Arc::clone(function)), before)
        };
        let mut objects = before.iter_cached();
        loop {
            let chunk: Vec<_> = objects
                .by_ref()
                .take(INDEX_CHUNK)
                .map(|object| (function.values(object, &mut None), object))
                .collect();
            if chunk.is_empty() {
                break;
            }
            self.write_in_place(|contents| {
                // An object that was replaced meanwhile was indexed by the write that replaced it.
                for (values, object) in &chunk {
                    contents.index_object(number, object, values);
                }
            });
        }
        self.write_in_place(|contents| contents.complete_index(number));
        Ok(number)
    }

    fn write_in_place(&self, write: impl FnOnce(&mut Contents<K>)) {
        let _guard = self.write_lock.lock();
        write(Arc::make_mut(&mut self.contents.write()));
    }

    /// Writes in place or on a copy, depending on `size`, unless `check` rejects the write.
    ///
    /// `write` returns the objects that it removes from the contents, and a rejected batch is dropped after the locks are
    /// released: user code in `Drop` does not run under a lock.
    fn write_locked<C: AsMut<[IndexedOp<K>]>, R>(
        &self,
        guard: MutexGuard<'_, ()>,
        mut batch: OpBatch<C>,
        size: usize,
        check: impl FnOnce(&Contents<K>) -> Result<(), StoreError>,
        write: impl FnOnce(&mut Contents<K>, C) -> R,
    ) -> Result<R, StoreError> {
        // A local is dropped before the parameters, so the lock is released before a rejected batch is dropped.
        let guard = guard;
        let before = {
            let contents = self.contents.read();
            contents.check_capacity(batch.ops.as_mut().len())?;
            check(&contents)?;
            (size > MAX_IN_PLACE || contents.grows_with(size)).then(|| Arc::clone(&contents))
        };
        let Some(mut after) = before else {
            return Ok(write(Arc::make_mut(&mut self.contents.write()), batch.ops));
        };
        let result = write(Arc::make_mut(&mut after), batch.ops);
        let before = std::mem::replace(&mut *self.contents.write(), after);
        drop(guard);
        drop(before);
        Ok(result)
    }

    /// Computes the index values of a batch and acquires the write lock. The values are computed without the lock; if an
    /// index was added meanwhile, its values are computed and the lock is acquired again.
    fn lock_indexed<C: AsMut<[IndexedOp<K>]>>(&self, batch: &mut OpBatch<C>) -> MutexGuard<'_, ()> {
        loop {
            let functions = Arc::clone(&self.contents.read().functions);
            batch.index(&functions);
            let guard = self.write_lock.lock();
            if batch.is_indexed_by(&self.contents.read().functions) {
                return guard;
            }
        }
    }
}

fn check_version<K: Object>(
    contents: &Contents<K>,
    offered: Option<&ResourceVersion>,
    is_new_epoch: bool,
) -> Result<(), StoreError> {
    if is_new_epoch { Ok(()) } else { contents.check_version(offered) }
}
