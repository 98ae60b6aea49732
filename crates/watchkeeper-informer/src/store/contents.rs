//! The contents of a store: a value without locks that is cheap to clone.

use std::{fmt, ops::Range, sync::Arc};

use foldhash::fast::RandomState;

use super::{
    cow_table::{CowTable, hash_of},
    cow_vec::CowVec,
    error::{IndexError, StoreError},
    index::{IndexFunction, Values},
    index_table::{IndexTable, SlotSet},
    op::{IndexedOp, Op, StoreOpResult},
};
use crate::{Cached, Object, ObjectKey, ResourceVersion, key::KeyText};

/// Objects in numbered slots, the table from keys to slots, the indexes, and the resourceVersion of all of them.
///
/// Slots are dense: when an object is removed, the last one is moved into its slot. Slot numbers therefore have no meaning
/// outside. All parts are copy-on-write, so that a clone shares them until one of the two is written to.
pub(super) struct Contents<K> {
    objects: CowVec<Option<Cached<K>>, OBJECTS_PER_PAGE>,
    /// The key of each slot. Keys have pages of their own: most writes replace an object and no key, and lists read objects
    /// and no keys.
    keys: CowVec<KeyText>,
    by_key: CowTable,
    /// The index tables in the order of `functions`. Behind one pointer, because most writes change no index.
    indexes: Arc<Vec<IndexState>>,
    pub(super) functions: Arc<Vec<Arc<IndexFunction<K>>>>,
    hasher: RandomState,
    pub(super) resource_version: Option<ResourceVersion>,
    pub(super) epoch: u64,
}

/// The number of objects in a page. Copying a page increments the reference count of each of its objects, most of which
/// are not in the processor's cache. This is the cost of the first write after a snapshot, so pages are small.
const OBJECTS_PER_PAGE: usize = 8;

#[derive(Clone)]
struct IndexState {
    table: IndexTable,
    /// False while objects that were stored before the index was added are being indexed.
    is_complete: bool,
}

impl<K> Clone for Contents<K> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            keys: self.keys.clone(),
            by_key: self.by_key.clone(),
            indexes: Arc::clone(&self.indexes),
            functions: Arc::clone(&self.functions),
            hasher: self.hasher.clone(),
            resource_version: self.resource_version.clone(),
            epoch: self.epoch,
        }
    }
}

/// Methods that read.
impl<K: Object> Contents<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: CowVec::new(),
            keys: CowVec::new(),
            by_key: CowTable::new(),
            indexes: Arc::default(),
            functions: Arc::default(),
            hasher: RandomState::default(),
            resource_version: None,
            epoch: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the object with this key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Cached<K>> {
        self.object(self.slot(self.hash(key), key)?)
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.slot(self.hash(key), key).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cached<K>> {
        self.objects.pages().flatten().flatten()
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        sorted(self.keys.iter())
    }

    /// Returns the number of the index with this name.
    pub(super) fn index_number(&self, name: &str) -> Result<usize, IndexError> {
        let number = self.functions.iter().position(|function| &*function.name == name);
        number.filter(|&number| self.is_complete(number)).ok_or_else(|| IndexError::Unknown {
            name: name.to_owned(),
            known: self.index_names().map(str::to_owned).collect(),
        })
    }

    pub(super) fn index_names(&self) -> impl Iterator<Item = &str> {
        let complete = self.functions.iter().enumerate().filter(|(number, _)| self.is_complete(*number));
        complete.map(|(_, function)| &*function.name)
    }

    /// Returns the slots with this value in an index.
    pub(super) fn indexed_slots(&self, index: usize, value: &str) -> Option<&SlotSet> {
        self.indexes.get(index)?.table.slots(&self.hasher, value)
    }

    /// Returns the objects with any of these values in an index, each once.
    pub(super) fn union<'a>(&self, index: usize, values: impl Iterator<Item = &'a str>) -> Vec<Cached<K>> {
        let sets = values.filter_map(|value| self.indexed_slots(index, value));
        let mut slots: Vec<u32> = sets.flat_map(SlotSet::iter).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.into_iter().filter_map(|slot| self.object(slot)).cloned().collect()
    }

    /// Returns the objects with this value in an index.
    pub(super) fn indexed(&self, index: usize, value: &str) -> IndexedObjects<'_, K> {
        let slots = self.indexed_slots(index, value);
        IndexedObjects { contents: self, slots, positions: 0..slots.map_or(0, SlotSet::len) }
    }

    /// Returns the keys of the objects with this value in an index, sorted.
    pub(super) fn indexed_keys(&self, index: usize, value: &str) -> Vec<ObjectKey> {
        let slots = self.indexed_slots(index, value).into_iter().flat_map(SlotSet::iter);
        sorted(slots.filter_map(|slot| self.keys.get(slot as usize)))
    }

    /// Returns the values for which an index contains objects, sorted.
    pub(super) fn index_values(&self, index: usize) -> Vec<Arc<str>> {
        let index = self.indexes.get(index).into_iter();
        let mut values: Vec<Arc<str>> = index.flat_map(|index| index.table.values()).cloned().collect();
        values.sort_unstable();
        values
    }

    fn object(&self, slot: u32) -> Option<&Cached<K>> {
        self.objects.get(slot as usize)?.as_ref()
    }

    fn is_complete(&self, index: usize) -> bool {
        self.indexes.get(index).is_some_and(|index| index.is_complete)
    }

    fn hash(&self, key: &[u8]) -> u32 {
        hash_of(&self.hasher, key)
    }

    fn slot(&self, hash: u32, key: &[u8]) -> Option<u32> {
        self.by_key.find(hash, |slot| self.keys.get(slot as usize).is_some_and(|text| text.as_bytes() == key))
    }
}

/// Methods that write. They neither run user code nor drop an object.
impl<K: Object> Contents<K> {
    /// Rejects a resourceVersion older than that of the contents. If the contents have a version without an order, every
    /// version is accepted, because only the order of arrival shows that it is newer.
    pub(super) fn check_version(&self, offered: Option<&ResourceVersion>) -> Result<(), StoreError> {
        let (Some(held), Some(offered)) = (&self.resource_version, offered) else { return Ok(()) };
        if !held.is_ordered() || offered >= held {
            return Ok(());
        }
        Err(StoreError::Backwards { held: held.clone(), offered: offered.clone() })
    }

    /// Rejects more objects than slot numbers.
    pub(super) fn check_capacity(&self, additional: usize) -> Result<(), StoreError> {
        // Index tables reserve two numbers.
        if self.len().saturating_add(additional) > u32::MAX as usize - 2 {
            return Err(StoreError::Full { held: self.len(), offered: additional });
        }
        Ok(())
    }

    /// Returns whether adding this many objects rebuilds the table of keys.
    pub(super) fn grows_with(&self, additional: usize) -> bool {
        self.by_key.grows_with(additional)
    }

    /// Sets the resourceVersion of the contents, if one is given.
    pub(super) fn advance_to(&mut self, version: Option<&ResourceVersion>) {
        if let Some(version) = version {
            self.resource_version = Some(version.clone());
        }
    }

    /// Starts a new epoch: earlier resourceVersions do not compare with later ones.
    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.resource_version = None;
    }

    pub(super) fn apply(&mut self, op: IndexedOp<K>) -> StoreOpResult<K> {
        match op.op {
            Op::Put(object) => self.put(object, &op.values).1,
            Op::Delete(key) => self.delete(key.as_str().as_bytes()),
        }
    }

    /// Applies the puts in `ops` and removes all other objects.
    pub(super) fn replace(&mut self, ops: Vec<IndexedOp<K>>) -> (Vec<StoreOpResult<K>>, Vec<Cached<K>>) {
        self.by_key.reserve(ops.len().saturating_sub(self.len()));
        let mut is_listed = vec![false; self.len()];
        let mut results = Vec::with_capacity(ops.len());
        for IndexedOp { op, values } in ops {
            let Op::Put(object) = op else { continue };
            let (slot, result) = self.put(object, &values);
            match is_listed.get_mut(slot as usize) {
                Some(is_listed) => *is_listed = true,
                None => is_listed.push(true),
            }
            results.push(result);
        }
        // From the last slot to the first, so that an object that is moved into a freed slot is a listed one.
        let unlisted = (0..is_listed.len()).rev().filter(|&slot| !is_listed[slot]);
        let deleted = unlisted.filter_map(|slot| self.remove(u32::try_from(slot).ok()?)).collect();
        (results, deleted)
    }

    /// Adds an empty index and returns its number.
    pub(super) fn add_index(&mut self, function: Arc<IndexFunction<K>>) -> usize {
        let number = self.indexes.len();
        let index = IndexState { table: IndexTable::new(self.len()), is_complete: self.len() == 0 };
        Arc::make_mut(&mut self.indexes).push(index);
        Arc::make_mut(&mut self.functions).push(function);
        number
    }

    /// Adds an object to an index, unless the object was replaced or removed meanwhile.
    pub(super) fn index_object(&mut self, index: usize, object: &Cached<K>, values: &Values) {
        let key = KeyText::of(object.key_ref());
        let Some(slot) = self.slot(self.hash(key.as_bytes()), key.as_bytes()) else { return };
        if self.object(slot).is_some_and(|stored| stored.ptr_eq(object))
            && let Some(index) = Arc::make_mut(&mut self.indexes).get_mut(index)
        {
            index.table.set(&self.hasher, slot, values);
        }
    }

    pub(super) fn complete_index(&mut self, index: usize) {
        if let Some(index) = Arc::make_mut(&mut self.indexes).get_mut(index) {
            index.is_complete = true;
        }
    }

    fn put(&mut self, object: Cached<K>, values: &[Values]) -> (u32, StoreOpResult<K>) {
        let key = KeyText::of(object.key_ref());
        let hash = self.hash(key.as_bytes());
        let (slot, result) = if let Some(slot) = self.slot(hash, key.as_bytes()) {
            if self.object(slot).is_some_and(|stored| stored.ptr_eq(&object)) {
                return (slot, StoreOpResult::Updated { old: object });
            }
            let old = self.objects.get_mut(slot as usize).and_then(|place| place.replace(object));
            (slot, old.map_or(StoreOpResult::Added, |old| StoreOpResult::Updated { old }))
        } else {
            // `check_capacity` has made sure that the number fits.
            let slot = u32::try_from(self.len()).unwrap_or(u32::MAX);
            self.objects.push(Some(object));
            self.keys.push(key);
            self.by_key.insert(hash, slot);
            for index in Arc::make_mut(&mut self.indexes) {
                index.table.push_slot();
            }
            (slot, StoreOpResult::Added)
        };
        for (index, values) in values.iter().enumerate() {
            // Most updates change no value.
            if self.indexes.get(index).is_some_and(|index| index.table.has(slot, values)) {
                continue;
            }
            if let Some(index) = Arc::make_mut(&mut self.indexes).get_mut(index) {
                index.table.set(&self.hasher, slot, values);
            }
        }
        debug_assert_eq!(values.len(), self.indexes.len(), "an operation has values for every index");
        (slot, result)
    }

    fn delete(&mut self, key: &[u8]) -> StoreOpResult<K> {
        let slot = self.slot(self.hash(key), key);
        slot.and_then(|slot| self.remove(slot))
            .map_or(StoreOpResult::Absent, |old| StoreOpResult::Deleted { old })
    }

    fn remove(&mut self, slot: u32) -> Option<Cached<K>> {
        let at = slot as usize;
        let removed_key = self.keys.swap_remove(at)?;
        self.by_key.remove(self.hash(removed_key.as_bytes()), slot);
        let removed = self.objects.swap_remove(at)?;
        if let Some(moved) = self.keys.get(at) {
            let last = u32::try_from(self.len()).unwrap_or(u32::MAX);
            self.by_key.renumber(self.hash(moved.as_bytes()), last, slot);
        }
        for index in Arc::make_mut(&mut self.indexes) {
            index.table.swap_remove_slot(&self.hasher, slot);
        }
        removed
    }
}

/// An iterator over the objects of a set of slots.
pub(super) struct IndexedObjects<'a, K> {
    contents: &'a Contents<K>,
    slots: Option<&'a SlotSet>,
    positions: Range<usize>,
}

impl<'a, K: Object> Iterator for IndexedObjects<'a, K> {
    type Item = &'a Cached<K>;

    fn next(&mut self) -> Option<&'a Cached<K>> {
        self.contents.object(self.slots?.get(self.positions.next()?)?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl<K: Object> ExactSizeIterator for IndexedObjects<'_, K> {}

impl<K> fmt::Debug for IndexedObjects<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexedObjects").field("remaining", &self.positions.len()).finish_non_exhaustive()
    }
}

/// Returns the keys of these texts, sorted.
fn sorted<'a>(texts: impl Iterator<Item = &'a KeyText>) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = texts.map(|text| ObjectKey::of_checked(text.as_str())).collect();
    keys.sort_unstable();
    keys
}
