//! One slot a key: the slab, and the table that finds a key's slot.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::Priority;

/// The number of a slot.
pub(crate) type SlotId = u32;

/// Stands for "no slot" in a link.
pub(crate) const NO_SLOT: SlotId = SlotId::MAX;

/// What a key is doing. The link of its slot means something else in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No key here; the link is the next free slot.
    Free,
    /// In line; the link is the next slot of its lane.
    Queued,
    /// Waits for a time somebody asked for; the link is its place in the heap of delays.
    Scheduled,
    /// Waits after a failure; the link is its place in the heap of delays.
    BackingOff,
    /// Handed out; the link is the generation of the token that may finish it.
    Processing,
    /// As `Processing`, and added again since: there is a rerun to look up when it is finished.
    Dirty,
}

/// A key and its state: 24 bytes for a 16-byte key such as `Arc<str>`.
///
/// The hash is not kept. It is needed only to grow the table and to remove a key, and four bytes a key cost
/// more than hashing a short string twice in its life.
#[derive(Debug)]
pub(crate) struct Slot<K> {
    key: Option<K>,
    pub(crate) link: u32,
    /// Failures since the last success; saturates, long after every backoff has reached its maximum.
    pub(crate) failures: u16,
    pub(crate) priority: Priority,
    pub(crate) state: State,
}

/// The slots of all live keys.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    slab: Vec<Slot<K>>,
    first_free: SlotId,
    live: usize,
    /// The most keys alive at once since the slots were last all free.
    peak: usize,
    table: HashTable<SlotId>,
    hasher: RandomState,
}

/// Below this many slots nothing is ever given back: it would save less than it costs.
const KEEP_SLOTS: usize = 1024;

impl<K: Hash + Eq> Slots<K> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { slab: Vec::new(), first_free: NO_SLOT, live: 0, peak: 0, table: HashTable::new(), hasher }
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn capacity(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<SlotId> {
        self.table.find(hash, |&id| self.slab[id as usize].key.as_ref() == Some(key)).copied()
    }

    /// Gives `key`, which must not be present, a slot. `None` when four billion keys are alive.
    pub(crate) fn insert(&mut self, hash: u64, key: K, priority: Priority) -> Option<SlotId> {
        let slot = Slot { key: Some(key), link: NO_SLOT, failures: 0, priority, state: State::Free };
        let id = if self.first_free == NO_SLOT {
            let id = SlotId::try_from(self.slab.len()).ok().filter(|&id| id != NO_SLOT)?;
            self.slab.push(slot);
            id
        } else {
            let id = self.first_free;
            self.first_free = self.slab[id as usize].link;
            self.slab[id as usize] = slot;
            id
        };
        let (slab, hasher) = (&self.slab, &self.hasher);
        self.table.insert_unique(hash, id, |&id| hash_of(hasher, &slab[id as usize]));
        self.live += 1;
        self.peak = self.peak.max(self.live);
        Some(id)
    }

    /// Frees a slot and gives its key back, to be dropped where no lock is held.
    pub(crate) fn remove(&mut self, id: SlotId) -> Option<K> {
        let hash = hash_of(&self.hasher, &self.slab[id as usize]);
        if let Ok(entry) = self.table.find_entry(hash, |&candidate| candidate == id) {
            entry.remove();
        }
        let slot = &mut self.slab[id as usize];
        let key = slot.key.take();
        slot.state = State::Free;
        slot.link = self.first_free;
        self.first_free = id;
        self.live -= 1;
        key
    }

    /// Gives memory back when a burst is over: called when no key is alive, true when the slots were reset.
    ///
    /// A queue that fills to the same height again and again keeps its memory; one that once held a million
    /// keys and now sees a hundred at a time does not.
    pub(crate) fn shrink_after_burst(&mut self) -> bool {
        debug_assert_eq!(self.live, 0, "only an empty queue can give up its slots");
        let peak = std::mem::take(&mut self.peak);
        if self.slab.len() <= KEEP_SLOTS || peak.saturating_mul(8) >= self.slab.len() {
            return false;
        }
        self.slab = Vec::with_capacity(peak);
        self.table = HashTable::with_capacity(peak);
        self.first_free = NO_SLOT;
        true
    }
}

fn hash_of<K: Hash>(hasher: &RandomState, slot: &Slot<K>) -> u64 {
    // Only slots with a key are in the table; a free one has nothing to hash.
    slot.key.as_ref().map_or(0, |key| hasher.hash_one(key))
}

impl<K> Slots<K> {
    pub(crate) fn key(&self, id: SlotId) -> Option<&K> {
        self.slab[id as usize].key.as_ref()
    }
}

impl<K> std::ops::Index<SlotId> for Slots<K> {
    type Output = Slot<K>;

    fn index(&self, id: SlotId) -> &Slot<K> {
        &self.slab[id as usize]
    }
}

impl<K> std::ops::IndexMut<SlotId> for Slots<K> {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.slab[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_slot_of_a_sixteen_byte_key_is_twenty_four_bytes() {
        assert_eq!(size_of::<Slot<Arc<str>>>(), 24);
    }

    #[test]
    fn memory_of_a_burst_is_given_back_once_the_queue_has_been_small_and_empty() {
        let hasher = RandomState::default();
        let mut slots = Slots::new(hasher.clone());
        let fill = move |slots: &mut Slots<u32>, count: u32| {
            let ids: Vec<SlotId> = (0..count)
                .map(|key| slots.insert(hasher.hash_one(key), key, Priority::NORMAL).expect("room"))
                .collect();
            for id in ids {
                assert!(slots.remove(id).is_some());
            }
            slots.shrink_after_burst()
        };
        assert!(!fill(&mut slots, 100_000), "the first burst may come again");
        assert!(fill(&mut slots, 10), "a small round shows it is over");
        assert!(slots.capacity() < KEEP_SLOTS);
        assert!(!fill(&mut slots, 10), "nothing left to give back");
    }
}
