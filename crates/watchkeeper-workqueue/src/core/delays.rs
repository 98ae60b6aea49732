//! Keys that wait for a time.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use super::slots::SlotId;

/// One waiting key, in order of when it is due. Equal times are told apart by the order of arrival.
///
/// Arrivals are counted by 32 bits: after four billion of them, keys due at the same nanosecond may change places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Delay {
    at: u64,
    arrival: u32,
    slot: SlotId,
}

/// Waiting keys, earliest first.
///
/// The earliest are in order, few enough for the processor's near caches. All others are in sheaves of a thousand or two,
/// each due before the next, in no order within. A sheaf is put in order when none is due before it. In one heap of a
/// million keys, each that is taken out would be a dozen trips to memory, one after the other.
///
/// A delay is moved or taken out exactly: there are no stale entries to skip, count or clean up, however often a key is
/// rescheduled.
///
/// Invariants: a key is among the first if it is due before the first sheaf starts, and else in the last sheaf that starts
/// no later than it is due; no sheaf is empty; there are no first ones only when there are no sheaves.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// In order.
    first: VecDeque<Delay>,
    /// By where they start: at that delay, or one that has been there.
    sheaves: BTreeMap<Delay, Vec<SlotId>>,
    dues: Dues,
    len: usize,
    arrivals: u32,
}

/// Keys in half a full sheaf. A sheaf that is full becomes two; as many first ones leave one half to a sheaf. The queue is
/// locked meanwhile: for about ten microseconds, and for sixty when a full sheaf is put in order. (Tests and the exploring of interleavings need several sheaves within reach.)
const HALF: usize = if cfg!(any(test, shuttle)) { 4 } else { 1024 };

impl Delays {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        self.first.front().map(|delay| delay.at)
    }

    pub(super) fn at(&self, slot: SlotId) -> u64 {
        self.dues.get(slot).at
    }

    pub(super) fn insert(&mut self, slot: SlotId, at: u64) {
        self.arrivals = self.arrivals.wrapping_add(1);
        let delay = Delay { at, arrival: self.arrivals, slot };
        self.dues.set(delay);
        self.len += 1;
        if let Some((_, sheaf)) = self.sheaves.range_mut(..=delay).next_back() {
            sheaf.push(slot);
            if sheaf.len() == 2 * HALF {
                let later = self.dues.split(sheaf);
                self.add_sheaf(later);
            }
        } else {
            let place = self.first.partition_point(|earlier| *earlier < delay);
            self.first.insert(place, delay);
            if self.first.len() == 2 * HALF {
                let later = self.first.split_off(HALF);
                self.add_sheaf(later);
            }
        }
    }

    /// Gives a waiting slot another time.
    pub(super) fn reschedule(&mut self, slot: SlotId, at: u64) {
        self.remove(slot);
        self.insert(slot, at);
    }

    pub(super) fn remove(&mut self, slot: SlotId) {
        self.len -= 1;
        let delay = self.dues.get(slot);
        if let Some((&start, sheaf)) = self.sheaves.range_mut(..=delay).next_back() {
            if let Some(place) = place_in(sheaf, slot) {
                sheaf.swap_remove(place);
            }
            if sheaf.is_empty() {
                self.sheaves.remove(&start);
            }
        } else {
            if let Ok(place) = self.first.binary_search(&delay) {
                self.first.remove(place);
            }
            self.refill();
        }
    }

    /// Takes out the earliest slot if its time has come.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<SlotId> {
        let delay = self.first.pop_front_if(|delay| delay.at <= now)?;
        self.len -= 1;
        self.refill();
        Some(delay.slot)
    }

    /// Empties it; in no particular order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = SlotId> + use<> {
        self.len = 0;
        let first = mem::take(&mut self.first).into_iter().map(|delay| delay.slot);
        first.chain(mem::take(&mut self.sheaves).into_values().flatten())
    }

    /// Gives memory back. Only when nothing waits.
    pub(super) fn shrink(&mut self) {
        debug_assert_eq!(self.len, 0, "what waits has its place in here");
        *self = Self { arrivals: self.arrivals, ..Self::default() };
    }

    /// Puts a sheaf in order when all that were due before it are gone.
    fn refill(&mut self) {
        if self.first.is_empty()
            && let Some((_, sheaf)) = self.sheaves.pop_first()
        {
            self.first.extend(sheaf.into_iter().map(|slot| self.dues.get(slot)));
            self.first.make_contiguous().sort_unstable();
        }
    }

    /// Makes a sheaf of delays, of which the first is the earliest.
    fn add_sheaf(&mut self, delays: impl IntoIterator<Item = Delay>) {
        let mut delays = delays.into_iter().peekable();
        let Some(&start) = delays.peek() else { return };
        let mut sheaf = Vec::with_capacity(2 * HALF);
        sheaf.extend(delays.map(|delay| delay.slot));
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
    fn get(&self, slot: SlotId) -> Delay {
        let (chunk, place) = (slot as usize / CHUNK, slot as usize % CHUNK);
        let chunk = &self.chunks[chunk];
        Delay { at: chunk.at[place], arrival: chunk.arrival[place], slot }
    }

    #[inline]
    fn set(&mut self, delay: Delay) {
        let (chunk, place) = (delay.slot as usize / CHUNK, delay.slot as usize % CHUNK);
        while self.chunks.len() <= chunk {
            self.chunks.push(Box::new(DueChunk { at: [0; CHUNK], arrival: [0; CHUNK] }));
        }
        let chunk = &mut self.chunks[chunk];
        (chunk.at[place], chunk.arrival[place]) = (delay.at, delay.arrival);
    }

    /// Leaves the earlier half in the sheaf and returns the others, the earliest of them first.
    fn split(&self, sheaf: &mut Vec<SlotId>) -> Vec<Delay> {
        let mut delays: Vec<Delay> = sheaf.iter().map(|&slot| self.get(slot)).collect();
        delays.select_nth_unstable(HALF);
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

    #[derive(Debug, Clone)]
    enum Call {
        Schedule(SlotId, u64),
        Remove(SlotId),
        PopDue(u64),
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            6 => (0..100_u32, 0..50_u64).prop_map(|(key, at)| Call::Schedule(key, at)),
            2 => (0..100_u32).prop_map(Call::Remove),
            1 => (0..50_u64).prop_map(Call::PopDue),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A hundred keys are a dozen sheaves and more.
        #[test]
        fn delays_come_out_by_time_and_then_by_arrival_after_any_changes(calls in prop::collection::vec(call(), 1..400)) {
            let (mut delays, mut expected) = (Delays::default(), BTreeMap::new());
            for (arrival, call) in calls.into_iter().enumerate() {
                match call {
                    Call::Schedule(key, at) => {
                        match expected.insert(key, (at, arrival)) {
                            None => delays.insert(key, at),
                            Some(_) => delays.reschedule(key, at),
                        }
                        prop_assert_eq!(delays.at(key), at);
                    }
                    Call::Remove(key) => {
                        if expected.remove(&key).is_some() {
                            delays.remove(key);
                        }
                    }
                    Call::PopDue(now) => {
                        let first = expected.iter().min_by_key(|(_, due)| **due).map(|(key, due)| (*key, due.0));
                        let due = first.filter(|(_, at)| *at <= now).map(|(key, _)| key);
                        prop_assert_eq!(delays.pop_due(now), due);
                        due.map(|key| expected.remove(&key));
                    }
                }
                prop_assert_eq!(delays.len(), expected.len());
                prop_assert_eq!(delays.next_at(), expected.values().map(|(at, _)| *at).min());
            }
        }
    }
}
