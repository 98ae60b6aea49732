//! One slot a key: the slab.

#![expect(
    clippy::inline_always,
    reason = "the path of every key: a fifth fewer instructions than with calls"
)]

use std::{
    mem,
    ops::{Index, IndexMut},
};

use super::{Offered, table::Table};
use crate::{Priority, fill::fill};

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
    /// Waits for a time somebody asked for; the link means nothing.
    Scheduled,
    /// Waits after a failure; the link means nothing.
    BackingOff,
    /// Handed out; the link is the generation of the token that may finish it.
    Processing,
    /// As `Processing`, and added again since: there is a rerun to look up when it is finished.
    Dirty,
}

/// What is known of a key: twelve bytes beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// Saves hashing the key again when it leaves, or when the table grows.
    pub(crate) hash: u32,
    pub(crate) link: u32,
    /// Failures since the last success; saturates, long after every backoff has reached its maximum.
    pub(crate) failures: u16,
    pub(crate) priority: Priority,
    pub(crate) state: State,
}

impl Slot {
    const FREE: Self =
        Self { hash: 0, link: NO_SLOT, failures: 0, priority: Priority::NORMAL, state: State::Free };
}

/// The slots of all live keys.
///
/// Slots come in chunks that never move, so the cost of a key is the same at any size and growing never copies
/// them. A chunk is an array, so a place in it needs no check. Keys and what is known of them lie apart: together they would be padded to the key's alignment.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    #[expect(clippy::vec_box, reason = "chunks must not move when there are more of them")]
    chunks: Vec<Box<[Slot; CHUNK]>>,
    /// The keys of the slots, in chunks of the same size.
    keys: Vec<Box<[Option<K>; CHUNK]>>,
    first_free: SlotId,
    /// Slots whose keys left, still to be taken out of the table: a few at a time, see [`Table::fetch`].
    leaving: Vec<SlotId>,
    live: usize,
    /// The most keys alive at once since the slots were last all free.
    peak: usize,
    table: Table,
}

const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 8;
const CHUNK_MASK: SlotId = (1 << CHUNK_BITS) - 1;
/// As many slots are never given back: they are a few pages.
const WORTH_KEEPING: usize = 1024;
/// So many slots are freed at once: as many trips to memory as a processor makes at a time, and some more.
const LEAVE_TOGETHER: usize = 32;

impl<K: Eq> Slots<K> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            keys: Vec::new(),
            first_free: NO_SLOT,
            leaving: Vec::new(),
            live: 0,
            peak: 0,
            table: Table::new(),
        }
    }

    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    #[inline(always)]
    pub(crate) fn key(&self, id: SlotId) -> Option<&K> {
        let (chunk, place) = place(id);
        self.keys[chunk][place].as_ref()
    }

    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, key: &K) -> Option<SlotId> {
        self.table.find(hash, |id| self.key(id) == Some(key))
    }

    /// Gives a key that must not be present a slot, taking it from its owner; the caller puts it where it belongs, in line or
    /// elsewhere. `None` when four billion keys are alive.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        offered: &mut impl Offered<K>,
        priority: Priority,
    ) -> Option<SlotId> {
        if self.table.is_full(self.live + self.leaving.len()) {
            self.make_room_in_table();
        }
        if self.first_free == NO_SLOT {
            self.add_chunk()?;
        }
        let id = self.first_free;
        let (chunk, place) = place(id);
        let (slot, room) = (&mut self.chunks[chunk][place], &mut self.keys[chunk][place]);
        // Last of all that could panic: what is taken goes where it belongs, by no detour.
        fill(room, offered.take()?);
        self.first_free = slot.link;
        *slot = Slot { hash, link: NO_SLOT, failures: 0, priority, state: State::Queued };
        self.table.insert(hash, id);
        self.live += 1;
        self.peak = self.peak.max(self.live);
        Some(id)
    }

    /// Frees a slot and gives its key back, to be dropped where no lock is held.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: SlotId) -> Option<K> {
        let (chunk, place) = place(id);
        // Without its key, the slot is not found any more.
        let key = self.keys[chunk][place].take();
        let slot = &mut self.chunks[chunk][place];
        slot.state = State::Free;
        self.live -= 1;
        if self.table.is_large() {
            self.free_later(id);
        } else {
            slot.link = mem::replace(&mut self.first_free, id);
            self.table.remove(slot.hash, id);
        }
        key
    }

    /// Gets ready to look for these hashes soon.
    pub(crate) fn fetch(&self, hashes: impl Iterator<Item = u32>) {
        if self.table.is_large() {
            self.table.fetch(hashes);
        }
    }

    #[inline(always)]
    fn free(&mut self, id: SlotId) {
        let (chunk, place) = place(id);
        let slot = &mut self.chunks[chunk][place];
        slot.link = mem::replace(&mut self.first_free, id);
        self.table.remove(slot.hash, id);
    }

    fn free_later(&mut self, id: SlotId) {
        self.leaving.push(id);
        if self.leaving.len() >= LEAVE_TOGETHER {
            self.free_leaving();
        }
    }

    fn free_leaving(&mut self) {
        let mut leaving = mem::take(&mut self.leaving);
        self.table.fetch(leaving.iter().map(|&id| self[id].hash));
        leaving.drain(..).for_each(|id| self.free(id));
        // Its room serves the next ones.
        self.leaving = leaving;
    }

    /// Gives memory back when a burst is over: called when no key is alive, true when the slots were reset.
    ///
    /// A queue that fills to the same height again and again keeps its memory; one that once held a million
    /// keys and now sees a hundred at a time does not.
    #[inline]
    pub(crate) fn shrink_after_burst(&mut self) -> bool {
        debug_assert_eq!(self.live, 0, "only an empty queue can give up its slots");
        let (peak, len) = (mem::take(&mut self.peak), self.chunks.len() * CHUNK);
        let is_over = len > WORTH_KEEPING && peak.saturating_mul(8) < len;
        if is_over {
            *self = Self::new();
        }
        is_over
    }

    /// The slot of this number, if it exists.
    #[inline(always)]
    pub(crate) fn get(&self, id: SlotId) -> Option<&Slot> {
        let (chunk, place) = place(id);
        self.chunks.get(chunk).map(|chunk| &chunk[place])
    }

    /// More free slots, when there are none. `None` when all numbers are taken.
    #[cold]
    fn add_chunk(&mut self) -> Option<()> {
        let first = SlotId::try_from(self.chunks.len() * CHUNK).ok()?;
        let last = first.checked_add(CHUNK_MASK).filter(|&last| last != NO_SLOT)?;
        let mut chunk = Box::new([Slot::FREE; CHUNK]);
        for (slot, next) in chunk.iter_mut().zip(first + 1..=last) {
            slot.link = next;
        }
        self.chunks.push(chunk);
        self.keys.push(Box::new([const { None }; CHUNK]));
        self.first_free = first;
        Some(())
    }

    #[cold]
    fn make_room_in_table(&mut self) {
        if !self.table.is_growing() {
            self.free_leaving();
        }
        let chunks = &self.chunks;
        self.table.make_room(|id| {
            let (chunk, place) = place(id);
            chunks[chunk][place].hash
        });
    }
}

/// The chunk a slot is in, and its place there.
#[inline]
fn place(id: SlotId) -> (usize, usize) {
    ((id >> CHUNK_BITS) as usize, (id & CHUNK_MASK) as usize)
}

/// The half of a hash that is kept: the upper one, in which foldhash mixes best.
#[inline]
pub(crate) fn kept_hash(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl<K> Index<SlotId> for Slots<K> {
    type Output = Slot;

    #[inline]
    fn index(&self, id: SlotId) -> &Slot {
        let (chunk, place) = place(id);
        &self.chunks[chunk][place]
    }
}

impl<K> IndexMut<SlotId> for Slots<K> {
    #[inline]
    fn index_mut(&mut self, id: SlotId) -> &mut Slot {
        let (chunk, place) = place(id);
        &mut self.chunks[chunk][place]
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_of_sixteen_bytes_is_kept_in_twenty_eight() {
        assert_eq!(size_of::<Slot>() + size_of::<Option<Arc<str>>>(), 28);
    }

    #[test]
    fn memory_of_a_burst_is_given_back_once_the_queue_has_been_small_and_empty() {
        let mut slots = Slots::new();
        let fill = |slots: &mut Slots<u64>, count: u64| {
            let ids: Vec<SlotId> = (0..count)
                .map(|key| {
                    slots.insert(kept_hash(key << 32), &mut Some(key), Priority::NORMAL).expect("room")
                })
                .collect();
            for id in ids {
                assert!(slots.remove(id).is_some());
            }
            slots.shrink_after_burst()
        };
        assert!(!fill(&mut slots, 100_000), "the first burst may come again");
        assert!(fill(&mut slots, 10), "a small round shows it is over");
        assert!(slots.chunks.is_empty() && slots.keys.is_empty() && slots.table.is_full(0));
        assert!(!fill(&mut slots, 10), "nothing left to give back");
    }

    #[test]
    fn keys_that_leave_a_large_table_are_gone_at_once_and_their_slots_serve_others() {
        let hash = |key: u64| kept_hash(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut slots = Slots::new();
        let mut ids: Vec<SlotId> = (0..50_000)
            .map(|key| slots.insert(hash(key), &mut Some(key), Priority::NORMAL).unwrap())
            .collect();
        assert!(slots.table.is_large());
        for (id, key) in ids.iter_mut().zip(0_u64..) {
            assert_eq!(slots.remove(*id), Some(key));
            assert_eq!(slots.find(hash(key), &key), None);
            if key % 3 == 0 {
                *id = slots.insert(hash(key), &mut Some(key), Priority::NORMAL).unwrap();
                assert_eq!(slots.find(hash(key), &key), Some(*id));
            }
        }
        assert_eq!(slots.live(), 50_000_usize.div_ceil(3));
        assert_eq!(slots.chunks.len(), 50_000_usize.div_ceil(CHUNK), "slots that were left serve others");
        for key in 0..50_000 {
            let wanted = (key % 3 == 0).then(|| ids[usize::try_from(key).unwrap()]);
            assert_eq!(slots.find(hash(key), &key), wanted);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Few different hashes, so that keys share buckets, also when there are more of them.
        #[test]
        fn every_key_is_found_in_its_slot_and_no_other(
            calls in prop::collection::vec((any::<bool>(), 0..300_u64), 1..2000),
            hashes in 1..40_u64,
        ) {
            let hash = |key: u64| kept_hash((key % hashes).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let (mut slots, mut expected) = (Slots::new(), BTreeMap::new());
            for (adds, key) in calls {
                prop_assert_eq!(slots.find(hash(key), &key), expected.get(&key).copied());
                if adds && !expected.contains_key(&key) {
                    expected.insert(key, slots.insert(hash(key), &mut Some(key), Priority::NORMAL).unwrap());
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
