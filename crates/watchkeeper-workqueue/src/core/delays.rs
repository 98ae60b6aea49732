//! Keys that wait for a time.

use std::{collections::BTreeMap, mem};

use super::{
    slots::{SlotId, Slots},
    soon::Soon,
};

/// When a key is due. Equal times are told apart by the order of arrival, so no two keys are due in the same moment.
///
/// Arrivals are counted by 32 bits: after four billion of them, keys due at the same nanosecond may change places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    at: u64,
    arrival: u32,
}

/// One waiting key, in sixteen bytes: beside a whole [`Due`], four of them would be lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    at: u64,
    arrival: u32,
    pub(super) slot: SlotId,
}

impl Delay {
    fn new(due: Due, slot: SlotId) -> Self {
        Self { at: due.at, arrival: due.arrival, slot }
    }

    #[inline]
    pub(super) fn due(&self) -> Due {
        Due { at: self.at, arrival: self.arrival }
    }
}

/// Waiting keys, earliest first.
///
/// The earliest are in a heap, small enough for the processor's near caches. All others are in sheaves of a thousand or
/// two, each due before the next, in no order within. A sheaf is put in order when none is due before it. In one heap of a
/// million keys, each that is taken out would be a dozen trips to memory, one after the other.
///
/// A delay is moved or taken out exactly: there are no stale entries to skip, count or clean up, however often a key is
/// rescheduled.
///
/// Invariants: a key is in the heap if it is due before the first sheaf starts, and else in the last sheaf that starts
/// no later than it is due; no sheaf is empty; the heap is empty only when there are no sheaves.
#[derive(Debug, Default)]
pub(super) struct Delays {
    soon: Soon,
    /// By when they start.
    sheaves: BTreeMap<Due, Vec<SlotId>>,
    dues: Dues,
    len: usize,
    arrivals: u32,
}

/// Keys in half a full sheaf. A sheaf that is full becomes two; a heap of as many leaves one half to a sheaf. The queue is
/// locked meanwhile: for some ten microseconds. (Tests and the exploring of interleavings need several sheaves within reach.)
const HALF: usize = if cfg!(any(test, shuttle)) { 4 } else { 1024 };

impl Delays {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        self.soon.first().map(|delay| delay.at)
    }

    pub(super) fn at(&self, slot: SlotId) -> u64 {
        self.dues.get(slot).at
    }

    pub(super) fn insert<K>(&mut self, slots: &mut Slots<K>, slot: SlotId, at: u64) {
        self.arrivals = self.arrivals.wrapping_add(1);
        let due = Due { at, arrival: self.arrivals };
        self.dues.set(slot, due);
        self.len += 1;
        if let Some((_, sheaf)) = self.sheaves.range_mut(..=due).next_back() {
            sheaf.push(slot);
            if sheaf.len() == 2 * HALF {
                let later = self.dues.split(sheaf);
                self.add_sheaf(later);
            }
        } else {
            self.soon.insert(slots, Delay::new(due, slot));
            if self.soon.len() == 2 * HALF {
                let later = self.soon.split_off(slots, HALF);
                self.add_sheaf(later);
            }
        }
    }

    /// Gives a waiting slot another time.
    pub(super) fn reschedule<K>(&mut self, slots: &mut Slots<K>, slot: SlotId, at: u64) {
        self.remove(slots, slot);
        self.insert(slots, slot, at);
    }

    pub(super) fn remove<K>(&mut self, slots: &mut Slots<K>, slot: SlotId) {
        self.len -= 1;
        let due = self.dues.get(slot);
        let Some((&start, sheaf)) = self.sheaves.range_mut(..=due).next_back() else {
            return self.remove_soon(slots, slot);
        };
        if let Some(place) = place_in(sheaf, slot) {
            sheaf.swap_remove(place);
        }
        if sheaf.is_empty() {
            self.sheaves.remove(&start);
        }
    }

    /// Takes out the earliest slot if its time has come.
    pub(super) fn pop_due<K>(&mut self, slots: &mut Slots<K>, now: u64) -> Option<SlotId> {
        let first = self.soon.first().filter(|delay| delay.at <= now)?.slot;
        self.len -= 1;
        self.remove_soon(slots, first);
        Some(first)
    }

    /// Empties it; in no particular order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = SlotId> + use<> {
        self.len = 0;
        let soon = self.soon.take_all().into_iter().map(|delay| delay.slot);
        soon.chain(mem::take(&mut self.sheaves).into_values().flatten())
    }

    /// Gives memory back. Only when nothing waits.
    pub(super) fn shrink(&mut self) {
        debug_assert_eq!(self.len, 0, "what waits has its place in here");
        *self = Self { arrivals: self.arrivals, ..Self::default() };
    }

    fn remove_soon<K>(&mut self, slots: &mut Slots<K>, slot: SlotId) {
        self.soon.remove(slots, slot);
        if self.soon.len() == 0
            && let Some((_, sheaf)) = self.sheaves.pop_first()
        {
            let delays = sheaf.into_iter().map(|slot| Delay::new(self.dues.get(slot), slot));
            self.soon.fill(slots, delays);
        }
    }

    /// Makes a sheaf of delays, of which the first is the earliest.
    fn add_sheaf(&mut self, delays: Vec<Delay>) {
        let Some(start) = delays.first().map(Delay::due) else { return };
        let mut sheaf = Vec::with_capacity(2 * HALF);
        sheaf.extend(delays.into_iter().map(|delay| delay.slot));
        self.sheaves.insert(start, sheaf);
    }
}

/// When each waiting slot is due: twelve bytes a slot, in chunks, so that growing moves none of them.
#[derive(Debug, Default)]
struct Dues {
    #[expect(clippy::vec_box, reason = "chunks must not move when there are more of them")]
    chunks: Vec<Box<DueChunk>>,
}

/// Times and arrivals apart: together they would be padded to sixteen bytes.
#[derive(Debug)]
struct DueChunk {
    at: [u64; CHUNK],
    arrival: [u32; CHUNK],
}

const CHUNK: usize = 256;

impl Dues {
    #[inline]
    fn get(&self, slot: SlotId) -> Due {
        let (chunk, place) = (slot as usize / CHUNK, slot as usize % CHUNK);
        let chunk = &self.chunks[chunk];
        Due { at: chunk.at[place], arrival: chunk.arrival[place] }
    }

    #[inline]
    fn set(&mut self, slot: SlotId, due: Due) {
        let (chunk, place) = (slot as usize / CHUNK, slot as usize % CHUNK);
        while self.chunks.len() <= chunk {
            self.chunks.push(Box::new(DueChunk { at: [0; CHUNK], arrival: [0; CHUNK] }));
        }
        let chunk = &mut self.chunks[chunk];
        (chunk.at[place], chunk.arrival[place]) = (due.at, due.arrival);
    }

    /// Leaves the earlier half in the sheaf and returns the others, the earliest of them first.
    fn split(&self, sheaf: &mut Vec<SlotId>) -> Vec<Delay> {
        let mut delays: Vec<Delay> = sheaf.iter().map(|&slot| Delay::new(self.get(slot), slot)).collect();
        delays.select_nth_unstable_by_key(HALF, Delay::due);
        let later = delays.split_off(HALF);
        sheaf.clear();
        sheaf.extend(delays.into_iter().map(|delay| delay.slot));
        later
    }
}

/// Where in its sheaf a slot is.
fn place_in(sheaf: &[SlotId], slot: SlotId) -> Option<usize> {
    // Many are compared at once, which is not so in a search that could end at each of them.
    const AT_ONCE: usize = 64;
    let part = sheaf.chunks(AT_ONCE).position(|part| part.contains(&slot))?;
    let within = sheaf[part * AT_ONCE..].iter().position(|&other| other == slot)?;
    Some(part * AT_ONCE + within)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::Priority;

    #[derive(Debug, Clone)]
    enum Call {
        Schedule(usize, u64),
        Remove(usize),
        PopDue(u64),
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            6 => (0..100_usize, 0..50_u64).prop_map(|(key, at)| Call::Schedule(key, at)),
            2 => (0..100_usize).prop_map(Call::Remove),
            1 => (0..50_u64).prop_map(Call::PopDue),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Deep enough (100 keys are four levels) for a removed place to be filled from another branch.
        #[test]
        fn delays_come_out_by_time_and_then_by_arrival_after_any_changes(calls in prop::collection::vec(call(), 1..400)) {
            let mut slots = Slots::new();
            let ids: Vec<SlotId> =
                (0..100).map(|key| slots.insert(key, &mut Some(key), Priority::NORMAL).unwrap()).collect();
            let (mut delays, mut expected) = (Delays::default(), BTreeMap::new());
            for (arrival, call) in calls.into_iter().enumerate() {
                match call {
                    Call::Schedule(key, at) => {
                        match expected.insert(key, (at, arrival)) {
                            None => delays.insert(&mut slots, ids[key], at),
                            Some(_) => delays.reschedule(&mut slots, ids[key], at),
                        }
                        prop_assert_eq!(delays.at(ids[key]), at);
                    }
                    Call::Remove(key) => {
                        if expected.remove(&key).is_some() {
                            delays.remove(&mut slots, ids[key]);
                        }
                    }
                    Call::PopDue(now) => {
                        let first = expected.iter().min_by_key(|(_, due)| **due).map(|(key, due)| (*key, due.0));
                        let due = first.filter(|(_, at)| *at <= now).map(|(key, _)| key);
                        prop_assert_eq!(delays.pop_due(&mut slots, now), due.map(|key| ids[key]));
                        due.map(|key| expected.remove(&key));
                    }
                }
                prop_assert_eq!(delays.len(), expected.len());
                prop_assert_eq!(delays.next_at(), expected.values().map(|(at, _)| *at).min());
            }
        }
    }
}
