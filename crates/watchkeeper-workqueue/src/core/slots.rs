//! One slot a key: the slab, and the hash chains through it that find a key's slot.

use std::mem;

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

/// A key and its state: 32 bytes for a 16-byte key such as `Arc<str>`.
#[derive(Debug)]
pub(crate) struct Slot<K> {
    key: Option<K>,
    /// Saves looking at the key to tell that it is another, and to move it when there are more chains.
    hash: u32,
    /// The next slot whose hash falls into the same chain.
    chain: SlotId,
    pub(crate) link: u32,
    /// Failures since the last success; saturates, long after every backoff has reached its maximum.
    pub(crate) failures: u16,
    pub(crate) priority: Priority,
    pub(crate) state: State,
}

/// The slots of all live keys.
///
/// The hash table is threaded through the slots themselves: besides them there is one number for each chain, so a
/// key costs its slot and four to eight bytes. Slots come in chunks that never move, so the cost of a key is the
/// same at any size and growing never copies them.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    chunks: Vec<Vec<Slot<K>>>,
    len: usize,
    first_free: SlotId,
    live: usize,
    /// The most keys alive at once since the slots were last all free.
    peak: usize,
    /// The first slot of each chain; a power of two of them.
    chains: Vec<SlotId>,
}

const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;
const LEAST_CHAINS: usize = 16;

impl<K: Eq> Slots<K> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), len: 0, first_free: NO_SLOT, live: 0, peak: 0, chains: Vec::new() }
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<SlotId> {
        let hash = fold(hash);
        let mut id = *self.chains.get(self.chain_of(hash))?;
        while id != NO_SLOT {
            let slot = &self[id];
            if slot.hash == hash && slot.key.as_ref() == Some(key) {
                return Some(id);
            }
            id = slot.chain;
        }
        None
    }

    /// Gives `key`, which must not be present, a slot. `None` when four billion keys are alive.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, key: K, priority: Priority) -> Option<SlotId> {
        if self.live >= self.chains.len() {
            self.grow_chains();
        }
        let hash = fold(hash);
        let chain = self.chain_of(hash);
        let state = State::Free;
        let slot = Slot {
            key: Some(key),
            hash,
            chain: self.chains[chain],
            link: NO_SLOT,
            failures: 0,
            priority,
            state,
        };
        let id = self.first_free;
        let id = if id == NO_SLOT {
            self.push(slot)?
        } else {
            self.first_free = self[id].link;
            self[id] = slot;
            id
        };
        self.chains[chain] = id;
        self.live += 1;
        self.peak = self.peak.max(self.live);
        Some(id)
    }

    /// Frees a slot and gives its key back, to be dropped where no lock is held.
    #[inline]
    pub(crate) fn remove(&mut self, id: SlotId) -> Option<K> {
        self.unchain(id);
        let first_free = mem::replace(&mut self.first_free, id);
        self.live -= 1;
        let slot = &mut self[id];
        slot.state = State::Free;
        slot.link = first_free;
        slot.key.take()
    }

    /// Gives memory back when a burst is over: called when no key is alive, true when the slots were reset.
    ///
    /// A queue that fills to the same height again and again keeps its memory; one that once held a million
    /// keys and now sees a hundred at a time does not.
    pub(crate) fn shrink_after_burst(&mut self) -> bool {
        debug_assert_eq!(self.live, 0, "only an empty queue can give up its slots");
        let peak = mem::take(&mut self.peak);
        let is_over = self.len > CHUNK && peak.saturating_mul(8) < self.len;
        if is_over {
            *self = Self::new();
        }
        is_over
    }

    /// Whether a slot of this number exists.
    #[inline]
    pub(crate) fn contains(&self, id: SlotId) -> bool {
        (id as usize) < self.len
    }

    #[inline]
    fn push(&mut self, slot: Slot<K>) -> Option<SlotId> {
        let id = SlotId::try_from(self.len).ok().filter(|&id| id != NO_SLOT)?;
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(slot),
            // The first chunk grows as it is needed: most queues are small.
            None => self.chunks.push(vec![slot]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(slot);
                self.chunks.push(chunk);
            }
        }
        self.len += 1;
        Some(id)
    }

    #[inline]
    fn chain_of(&self, hash: u32) -> usize {
        hash as usize & self.chains.len().wrapping_sub(1)
    }

    #[inline]
    fn unchain(&mut self, id: SlotId) {
        let (hash, next) = (self[id].hash, self[id].chain);
        let chain = self.chain_of(hash);
        let mut before = self.chains[chain];
        if before == id {
            self.chains[chain] = next;
            return;
        }
        while self[before].chain != id {
            before = self[before].chain;
        }
        self[before].chain = next;
    }

    /// Doubles the chains and deals the slots out anew, in the order they lie in memory.
    #[cold]
    fn grow_chains(&mut self) {
        let count = (self.chains.len() * 2).max(LEAST_CHAINS);
        self.chains.clear();
        self.chains.resize(count, NO_SLOT);
        for (id, slot) in (0..).zip(self.chunks.iter_mut().flatten()) {
            if slot.key.is_some() {
                let chain = slot.hash as usize & (count - 1);
                slot.chain = mem::replace(&mut self.chains[chain], id);
            }
        }
    }
}

impl<K> Slots<K> {
    #[inline]
    pub(crate) fn key(&self, id: SlotId) -> Option<&K> {
        self[id].key.as_ref()
    }
}

/// The half of a hash that is kept: the upper one, in which foldhash mixes best.
#[inline]
fn fold(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl<K> std::ops::Index<SlotId> for Slots<K> {
    type Output = Slot<K>;

    #[inline]
    fn index(&self, id: SlotId) -> &Slot<K> {
        &self.chunks[id as usize >> CHUNK_BITS][id as usize & (CHUNK - 1)]
    }
}

impl<K> std::ops::IndexMut<SlotId> for Slots<K> {
    #[inline]
    fn index_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.chunks[id as usize >> CHUNK_BITS][id as usize & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slot_of_a_sixteen_byte_key_is_thirty_two_bytes() {
        assert_eq!(size_of::<Slot<Arc<str>>>(), 32);
    }

    #[test]
    fn memory_of_a_burst_is_given_back_once_the_queue_has_been_small_and_empty() {
        let mut slots = Slots::new();
        let fill = |slots: &mut Slots<u64>, count: u64| {
            let ids: Vec<SlotId> =
                (0..count).map(|key| slots.insert(key << 32, key, Priority::NORMAL).expect("room")).collect();
            for id in ids {
                assert!(slots.remove(id).is_some());
            }
            slots.shrink_after_burst()
        };
        assert!(!fill(&mut slots, 100_000), "the first burst may come again");
        assert!(fill(&mut slots, 10), "a small round shows it is over");
        assert!(slots.chunks.is_empty() && slots.chains.is_empty());
        assert!(!fill(&mut slots, 10), "nothing left to give back");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Few different hashes, so that keys share chains, also when there are more of them.
        #[test]
        fn every_key_is_found_in_its_slot_and_no_other(
            calls in prop::collection::vec((any::<bool>(), 0..300_u64), 1..2000),
            hashes in 1..40_u64,
        ) {
            let hash = |key: u64| (key % hashes).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let (mut slots, mut expected) = (Slots::new(), BTreeMap::new());
            for (adds, key) in calls {
                prop_assert_eq!(slots.find(hash(key), &key), expected.get(&key).copied());
                if adds && !expected.contains_key(&key) {
                    expected.insert(key, slots.insert(hash(key), key, Priority::NORMAL).unwrap());
                } else if let Some(id) = expected.remove(&key) {
                    prop_assert_eq!(slots.remove(id), Some(key));
                }
                prop_assert_eq!(slots.live(), expected.len());
            }
            for (key, id) in expected {
                prop_assert_eq!(slots.find(hash(key), &key), Some(id));
                prop_assert_eq!(slots.key(id), Some(&key));
            }
        }
    }
}
