//! The entries of all keys in the queue, and the hash table that finds them.

use std::{
    mem,
    ops::{Index, IndexMut},
};

use hashbrown::HashTable;
use slab::Slab;

use super::calls::Add;
use crate::{Cause, Causes, Priority, cause::CauseSet};

/// The index of an entry.
pub(crate) type Slot = u32;

/// The absence of a slot, in links.
pub(super) const NO_SLOT: Slot = Slot::MAX;

/// The state of a key, which names the structure that contains its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Can be dequeued: in the list of its priority.
    Queued,
    /// Waits for a requested time: in the delays.
    Scheduled,
    /// Waits after a failure: in the delays.
    BackingOff,
    /// Dequeued and not finished: in the work in progress.
    Processing,
}

/// A key and everything the queue stores about it: 72 bytes for an `Arc<str>`.
#[derive(Debug)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) causes: CauseSet,
    /// The number of adds with a cause that were merged into the next run.
    pub(super) adds: u32,
    /// The time at which the key became ready (`Queued`), is due (`Scheduled`, `BackingOff`) or was dequeued (`Processing`).
    pub(super) at_nanos: u64,
    /// The neighbours in the list of a queued key.
    pub(super) previous: Slot,
    pub(super) next: Slot,
    /// The sequence number in the delays, or the index in the work in progress.
    pub(super) position: u32,
    /// Stored so that neither removing the key nor growing the table hashes keys again.
    pub(super) hash: u32,
    /// Failures since the last success. Saturates.
    pub(super) failures: u16,
    pub(super) priority: Priority,
    pub(super) state: State,
}

impl<K> Entry<K> {
    pub(super) fn new(key: K, hash: u32, priority: Priority) -> Self {
        let (causes, state) = (CauseSet::default(), State::Queued);
        let (previous, next) = (NO_SLOT, NO_SLOT);
        Self {
            key,
            causes,
            adds: 0,
            at_nanos: 0,
            previous,
            next,
            position: 0,
            hash,
            failures: 0,
            priority,
            state,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Scheduled | State::BackingOff)
    }

    /// Records the cause and the failure of an add.
    pub(super) fn record(&mut self, add: Add) {
        add.cause.into_iter().for_each(|cause| self.add_cause(cause));
        self.failures = self.failures.saturating_add(u16::from(add.pending.is_failure()));
    }

    pub(super) fn add_cause(&mut self, cause: Cause) {
        self.causes.insert(cause);
        self.adds = self.adds.saturating_add(1);
    }

    pub(super) fn take_causes(&mut self) -> Causes {
        Causes { set: mem::take(&mut self.causes), adds: mem::take(&mut self.adds) }
    }

    /// Puts the causes of the run that ends before those of the adds during it.
    pub(super) fn prepend_causes(&mut self, mut earlier: Causes) {
        earlier.append(self.take_causes());
        Causes { set: self.causes, adds: self.adds } = earlier;
    }
}

const _: () = assert!(size_of::<Entry<std::sync::Arc<str>>>() == 72);

/// A slab of entries and a table of their slots.
#[derive(Debug)]
pub(super) struct Slots<K> {
    entries: Slab<Entry<K>>,
    table: HashTable<Slot>,
    /// The largest number of entries since the slab was last empty.
    peak: usize,
}

/// Slabs up to this capacity are kept when the queue becomes empty.
const RETAINED_CAPACITY: usize = 1024;

impl<K: Eq> Slots<K> {
    pub(super) fn new() -> Self {
        Self { entries: Slab::new(), table: HashTable::new(), peak: 0 }
    }

    pub(super) fn find(&self, hash: u32, key: &K) -> Option<Slot> {
        self.table.find(widen(hash), |&slot| self[slot].hash == hash && self[slot].key == *key).copied()
    }

    /// Stores an entry whose key is absent. Returns `None` when all 2³²−1 slots are in use.
    pub(super) fn insert(&mut self, entry: Entry<K>) -> Option<Slot> {
        let slot = Slot::try_from(self.entries.vacant_key()).ok().filter(|&slot| slot != NO_SLOT)?;
        let hash = widen(entry.hash);
        self.entries.insert(entry);
        let Self { entries, table, .. } = self;
        table.insert_unique(hash, slot, |&other| widen(entries[other as usize].hash));
        self.peak = self.peak.max(self.entries.len());
        Some(slot)
    }

    /// Removes an entry and returns its key, which the caller drops after the queue is unlocked.
    pub(super) fn remove(&mut self, slot: Slot) -> K {
        let Entry { key, hash, .. } = self.entries.remove(slot as usize);
        if let Ok(found) = self.table.find_entry(widen(hash), |&other| other == slot) {
            found.remove();
        }
        let (peak, capacity) = (self.peak, self.entries.capacity());
        if self.entries.is_empty() {
            self.peak = 0;
            // A queue that fills again and again keeps its memory; after a single burst the memory is freed.
            if capacity > RETAINED_CAPACITY && peak < capacity / 8 {
                *self = Self::new();
            }
        }
        key
    }
}

impl<K> Index<Slot> for Slots<K> {
    type Output = Entry<K>;

    fn index(&self, slot: Slot) -> &Entry<K> {
        &self.entries[slot as usize]
    }
}

impl<K> IndexMut<Slot> for Slots<K> {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry<K> {
        &mut self.entries[slot as usize]
    }
}

/// Fills the 64 bits of a hash: the table indexes by the low bits and compares the high ones.
fn widen(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_freed_when_the_queue_is_empty_after_a_much_smaller_burst() {
        let mut slots = Slots::new();
        let mut fill_and_empty = |count: u32| {
            let entries = (0..count).map(|key| Entry::new(key, key, Priority::NORMAL));
            let filled: Vec<Slot> = entries.filter_map(|entry| slots.insert(entry)).collect();
            for slot in filled {
                slots.remove(slot);
            }
            slots.entries.capacity()
        };
        let large = fill_and_empty(10_000);
        assert!(large >= 10_000, "the same burst may come again");
        assert_eq!(fill_and_empty(5_000), large);
        assert_eq!(fill_and_empty(100), 0);
        assert!((100..=1024).contains(&fill_and_empty(100)), "a small slab is kept");
    }
}
