//! The contents of a store: a value that can be copied at any time for next to nothing.

use std::{fmt, ops::Range, sync::Arc};

use foldhash::fast::RandomState;

use super::{
    change::{Asked, Outcome, Prepared},
    definition::Definition,
    error::{IndexError, StoreError},
    index_table::IndexTable,
    key_text::KeyText,
    slot_set::SlotSet,
    slots::Slots,
    stored::{Stored, load_all},
    table::{Table, hash_of_text},
    values::Values,
};
use crate::{Object, ObjectKey, ResourceVersion, key_ref::KeyRef};

/// Objects that are announced together before they are loaded: as many as leave room in the nearest cache.
const LOADED_AT_ONCE: usize = 64;

/// Objects in numbered slots, the table that finds a key's slot, the indexes, and the version all of it is true for.
///
/// Slots are dense: the last object moves into the place of a removed one. So nothing is ever half empty, and slot
/// numbers mean nothing outside. Every part is in pages that a copy shares until it writes to them.
pub(crate) struct State<K> {
    slots: Slots<K>,
    by_key: Table,
    /// In the order of the definitions. Most writes change no index, and so a copy counts one reference for all of them.
    indexes: Arc<Vec<Indexed>>,
    pub(super) definitions: Arc<Vec<Arc<Definition<K>>>>,
    hasher: RandomState,
    pub(super) resource_version: Option<ResourceVersion>,
    pub(super) epoch: u64,
}

#[derive(Clone)]
struct Indexed {
    table: IndexTable,
    /// False while objects that were there before the index are still being indexed.
    is_complete: bool,
}

impl<K> Clone for State<K> {
    fn clone(&self) -> Self {
        Self {
            slots: self.slots.clone(),
            by_key: self.by_key.clone(),
            indexes: Arc::clone(&self.indexes),
            definitions: Arc::clone(&self.definitions),
            hasher: self.hasher.clone(),
            resource_version: self.resource_version.clone(),
            epoch: self.epoch,
        }
    }
}

/// Reading.
impl<K: Object> State<K> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(),
            by_key: Table::new(),
            indexes: Arc::default(),
            definitions: Arc::default(),
            hasher: RandomState::default(),
            resource_version: None,
            epoch: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The object of a key, to keep.
    pub(super) fn get(&self, key: &[u8]) -> Option<Arc<K>> {
        let announce = |stored: &Stored<K>| {
            stored.announce();
            stored.announce_to_reader();
        };
        self.find_object(key, announce).map(Stored::load)
    }

    /// A look at the object of a key.
    pub(super) fn look(&self, key: &[u8]) -> Option<&Arc<K>> {
        self.find_object(key, |_| ()).map(Stored::look)
    }

    /// The object of a key. What is needed of it next is announced, to be fetched while the key is compared.
    fn find_object(&self, key: &[u8], announce: impl Fn(&Stored<K>)) -> Option<&Stored<K>> {
        let mut found = None;
        self.by_key.find(hash_of_text(&self.hasher, key), |slot| {
            found = self.slots.get(slot).inspect(|stored| announce(stored));
            self.slots.is(slot, key)
        })?;
        found
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.find(hash_of_text(&self.hasher, key), key).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stored<K>> {
        self.slots.iter()
    }

    pub(super) fn list(&self) -> Vec<Arc<K>> {
        let mut objects = Vec::with_capacity(self.len());
        for page in self.slots.pages() {
            load_all(page.iter().flatten(), &mut objects);
        }
        objects
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        sorted(self.slots.keys())
    }

    /// The number of an index, if it is complete.
    pub(super) fn index_number(&self, name: &str) -> Result<usize, IndexError> {
        let number = self.definitions.iter().position(|definition| &*definition.name == name);
        number.filter(|&number| self.is_complete(number)).ok_or_else(|| IndexError::Unknown {
            name: name.to_owned(),
            known: self.index_names().map(str::to_owned).collect(),
        })
    }

    pub(super) fn index_names(&self) -> impl Iterator<Item = &str> {
        let complete = self.definitions.iter().enumerate().filter(|(number, _)| self.is_complete(*number));
        complete.map(|(_, definition)| &*definition.name)
    }

    /// The slots that have a value in an index.
    pub(super) fn indexed(&self, index: usize, value: &str) -> Option<&SlotSet> {
        self.indexes.get(index)?.table.slots(&self.hasher, value)
    }

    /// The objects that have any of these values in an index, each once.
    pub(super) fn union<'a>(&self, index: usize, values: impl Iterator<Item = &'a str>) -> Vec<Arc<K>> {
        let sets = values.filter_map(|value| self.indexed(index, value));
        let mut slots: Vec<u32> = sets.flat_map(SlotSet::iter).collect();
        slots.sort_unstable();
        slots.dedup();
        self.load(&slots)
    }

    /// The objects that have a value in an index.
    pub(super) fn indexed_objects(&self, index: usize, value: &str) -> Vec<Arc<K>> {
        match self.indexed(index, value) {
            None => Vec::new(),
            Some(SlotSet::Few(slots)) => self.load(slots),
            Some(set) => self.load(&set.iter().collect::<Vec<u32>>()),
        }
    }

    /// A look at the objects that have a value in an index.
    pub(super) fn indexed_looks(&self, index: usize, value: &str) -> Looks<'_, K> {
        let slots = self.indexed(index, value);
        Looks { state: self, slots, positions: 0..slots.map_or(0, SlotSet::len) }
    }

    /// The keys of the objects that have a value in an index, sorted.
    pub(super) fn indexed_keys(&self, index: usize, value: &str) -> Vec<ObjectKey> {
        let slots = self.indexed(index, value).into_iter().flat_map(SlotSet::iter);
        sorted(slots.filter_map(|slot| self.slots.key(slot)))
    }

    fn load(&self, slots: &[u32]) -> Vec<Arc<K>> {
        let mut objects = Vec::with_capacity(slots.len());
        for some in slots.chunks(LOADED_AT_ONCE) {
            load_all(some.iter().filter_map(|&slot| self.slots.get(slot)), &mut objects);
        }
        objects
    }

    /// The values an index has objects for, sorted.
    pub(super) fn index_values(&self, index: usize) -> Vec<Arc<str>> {
        let indexed = self.indexes.get(index).into_iter();
        let mut values: Vec<Arc<str>> = indexed.flat_map(|indexed| indexed.table.values()).cloned().collect();
        values.sort_unstable();
        values
    }

    fn is_complete(&self, index: usize) -> bool {
        self.indexes.get(index).is_some_and(|indexed| indexed.is_complete)
    }

    fn find(&self, hash: u32, key: &[u8]) -> Option<u32> {
        self.by_key.find(hash, |slot| self.slots.is(slot, key))
    }
}

/// Writing. Nothing here runs the user's code or drops an object.
impl<K: Object> State<K> {
    /// Refuses a version that is not known to be at least the one held. Where the one held has no order there is nothing
    /// to go by but that the other came later.
    pub(super) fn check_version(&self, offered: Option<&ResourceVersion>) -> Result<(), StoreError> {
        let (Some(held), Some(offered)) = (&self.resource_version, offered) else { return Ok(()) };
        if !held.is_ordered() || offered >= held {
            return Ok(());
        }
        Err(StoreError::Backwards { held: held.clone(), offered: offered.clone() })
    }

    /// Refuses more objects than there are slot numbers.
    pub(super) fn check_room(&self, additional: usize) -> Result<(), StoreError> {
        // Two numbers have other meanings in the tables.
        if self.len().saturating_add(additional) > u32::MAX as usize - 2 {
            return Err(StoreError::Full { held: self.len(), offered: additional });
        }
        Ok(())
    }

    /// Whether adding this many objects means copying the whole table of keys.
    pub(super) fn grows_with(&self, additional: usize) -> bool {
        self.by_key.grows_with(additional)
    }

    /// The contents are true for this version from now on; without one it stays as it is.
    pub(super) fn advance_to(&mut self, version: Option<&ResourceVersion>) {
        if let Some(version) = version {
            self.resource_version = Some(version.clone());
        }
    }

    /// The server's history begins anew: versions so far say nothing about those to come.
    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.resource_version = None;
    }

    /// Makes a change.
    pub(super) fn apply(&mut self, change: Prepared<K>) -> Outcome<K> {
        match change.asked {
            Asked::Put(object) => self.put(object, &change.values).1,
            Asked::Delete(key) => self.delete(key.as_str().as_bytes()),
        }
    }

    /// Makes every change, which are all puts, and removes what they did not touch.
    pub(super) fn replace(&mut self, changes: Vec<Prepared<K>>) -> (Vec<Outcome<K>>, Vec<Arc<K>>) {
        self.by_key.reserve(changes.len().saturating_sub(self.len()));
        let mut is_listed = vec![false; self.len()];
        let mut outcomes = Vec::with_capacity(changes.len());
        for change in changes {
            let Asked::Put(object) = change.asked else { continue };
            let (slot, outcome) = self.put(object, &change.values);
            match is_listed.get_mut(slot as usize) {
                Some(is_listed) => *is_listed = true,
                None => is_listed.push(true),
            }
            outcomes.push(outcome);
        }
        // From the last to the first: what moves into a freed slot is then always listed.
        let unlisted = (0..is_listed.len()).rev().filter(|&slot| !is_listed[slot]);
        let deleted = unlisted.filter_map(|slot| self.remove(u32::try_from(slot).ok()?)).collect();
        (outcomes, deleted)
    }

    /// Adds an index that has nothing in it yet, under the next number.
    pub(super) fn add_index(&mut self, definition: Arc<Definition<K>>) -> usize {
        let number = self.indexes.len();
        let indexed = Indexed { table: IndexTable::new(self.len()), is_complete: self.len() == 0 };
        Arc::make_mut(&mut self.indexes).push(indexed);
        Arc::make_mut(&mut self.definitions).push(definition);
        number
    }

    /// Lists an object in an index, if it is still the one of its key.
    pub(super) fn index_object(&mut self, index: usize, object: &Arc<K>, values: &Values) {
        let key = KeyText::of(KeyRef::of(&**object));
        let key = key.as_bytes();
        let Some(slot) = self.find(hash_of_text(&self.hasher, key), key) else { return };
        if self.slots.get(slot).is_some_and(|stored| stored.is(object))
            && let Some(indexed) = Arc::make_mut(&mut self.indexes).get_mut(index)
        {
            indexed.table.set(&self.hasher, slot, values);
        }
    }

    pub(super) fn complete_index(&mut self, index: usize) {
        if let Some(indexed) = Arc::make_mut(&mut self.indexes).get_mut(index) {
            indexed.is_complete = true;
        }
    }

    fn put(&mut self, object: Arc<K>, values: &[Values]) -> (u32, Outcome<K>) {
        let key = KeyText::of(KeyRef::of(&*object));
        let hash = hash_of_text(&self.hasher, key.as_bytes());
        let (slot, outcome) = if let Some(slot) = self.find(hash, key.as_bytes()) {
            if self.slots.get(slot).is_some_and(|stored| stored.is(&object)) {
                return (slot, Outcome::Updated { old: object });
            }
            let old = self.slots.replace(slot, Stored::new(object));
            (slot, old.map_or(Outcome::Added, |old| Outcome::Updated { old: old.into_object() }))
        } else {
            // `check_room` has made sure that the number fits.
            let slot = u32::try_from(self.len()).unwrap_or(u32::MAX);
            self.slots.push(key, Stored::new(object));
            self.by_key.insert(hash, slot);
            for indexed in Arc::make_mut(&mut self.indexes) {
                indexed.table.push_slot();
            }
            (slot, Outcome::Added)
        };
        for (index, values) in values.iter().enumerate() {
            // The usual answer: most updates change no value.
            if self.indexes.get(index).is_some_and(|indexed| indexed.table.has(slot, values)) {
                continue;
            }
            if let Some(indexed) = Arc::make_mut(&mut self.indexes).get_mut(index) {
                indexed.table.set(&self.hasher, slot, values);
            }
        }
        debug_assert_eq!(values.len(), self.indexes.len(), "an object is indexed by every index or by none");
        (slot, outcome)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<K> {
        let slot = self.find(hash_of_text(&self.hasher, key), key);
        slot.and_then(|slot| self.remove(slot)).map_or(Outcome::Absent, |old| Outcome::Deleted { old })
    }

    fn remove(&mut self, slot: u32) -> Option<Arc<K>> {
        let hash = |key: &str| hash_of_text(&self.hasher, key.as_bytes());
        self.by_key.remove(hash(self.slots.key(slot)?), slot);
        let removed = self.slots.swap_remove(slot)?;
        if let Some(moved) = self.slots.key(slot) {
            // It was the last one.
            self.by_key.renumber(hash(moved), u32::try_from(self.len()).unwrap_or(u32::MAX), slot);
        }
        for indexed in Arc::make_mut(&mut self.indexes) {
            indexed.table.swap_remove_slot(&self.hasher, slot);
        }
        Some(removed.into_object())
    }
}

/// A look at one object after the other of a set of slots.
pub(super) struct Looks<'a, K> {
    state: &'a State<K>,
    slots: Option<&'a SlotSet>,
    positions: Range<usize>,
}

impl<'a, K> Iterator for Looks<'a, K> {
    type Item = &'a Arc<K>;

    fn next(&mut self) -> Option<&'a Arc<K>> {
        let slot = self.slots?.get(self.positions.next()?)?;
        self.state.slots.get(slot).map(Stored::look)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl<K> ExactSizeIterator for Looks<'_, K> {}

impl<K> fmt::Debug for Looks<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Looks").field("left", &self.positions.len()).finish_non_exhaustive()
    }
}

/// The keys of these texts, sorted.
fn sorted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = texts.map(ObjectKey::of_checked).collect();
    keys.sort_unstable();
    keys
}
