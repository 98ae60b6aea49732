//! Keys that wait for a time.

use super::{
    places::{CHILDREN, Places},
    slots::{NO_SLOT, SlotId, Slots},
};

/// One waiting key. Sixteen bytes, so the four children of a heap node fill a cache line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    at: u64,
    /// Order of arrival, to keep equal times in order. Wraps: it only ever decides between equal times.
    arrival: u32,
    slot: SlotId,
}

impl Delay {
    /// Where none is.
    pub(super) const NONE: Self = Self { at: u64::MAX, arrival: 0, slot: NO_SLOT };

    fn is_before(&self, other: &Self) -> bool {
        self.at < other.at
            || (self.at == other.at && (self.arrival.wrapping_sub(other.arrival).cast_signed()) < 0)
    }
}

/// Waiting keys, earliest first.
///
/// A four-way heap in which every slot knows its own place (in its link), so that a delay is moved or taken
/// out exactly: there are no stale entries to skip, count or clean up, however often a key is rescheduled.
#[derive(Debug, Default)]
pub(super) struct Delays {
    heap: Places,
    arrivals: u32,
}

impl Delays {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        self.heap.first().map(|delay| delay.at)
    }

    pub(super) fn at<K>(&self, slots: &Slots<K>, slot: SlotId) -> u64 {
        self.heap[slots[slot].link as usize].at
    }

    pub(super) fn insert<K>(&mut self, slots: &mut Slots<K>, slot: SlotId, at: u64) {
        let arrival = self.next_arrival();
        self.heap.push(Delay { at, arrival, slot });
        self.sift_up(slots, self.heap.len() - 1);
    }

    /// Gives a waiting slot another time.
    pub(super) fn reschedule<K>(&mut self, slots: &mut Slots<K>, slot: SlotId, at: u64) {
        let place = slots[slot].link as usize;
        let arrival = self.next_arrival();
        self.heap[place] = Delay { at, arrival, slot };
        self.settle(slots, place);
    }

    pub(super) fn remove<K>(&mut self, slots: &mut Slots<K>, slot: SlotId) {
        let place = slots[slot].link as usize;
        let Some(last) = self.heap.pop() else { return };
        if place < self.heap.len() {
            self.heap[place] = last;
            self.settle(slots, place);
        }
    }

    /// Takes out the earliest slot if its time has come.
    pub(super) fn pop_due<K>(&mut self, slots: &mut Slots<K>, now: u64) -> Option<SlotId> {
        let first = self.heap.first().filter(|delay| delay.at <= now)?.slot;
        self.remove(slots, first);
        Some(first)
    }

    /// Empties the heap; in no particular order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = SlotId> + use<> {
        let heap = std::mem::take(&mut self.heap);
        (0..heap.len()).map(move |place| heap[place].slot)
    }

    pub(super) fn shrink(&mut self) {
        self.heap.shrink();
    }

    fn next_arrival(&mut self) -> u32 {
        self.arrivals = self.arrivals.wrapping_add(1);
        self.arrivals
    }

    fn settle<K>(&mut self, slots: &mut Slots<K>, place: usize) {
        let place = self.sift_up(slots, place);
        self.sift_down(slots, place);
    }

    fn sift_up<K>(&mut self, slots: &mut Slots<K>, mut place: usize) -> usize {
        let moving = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if !moving.is_before(&self.heap[parent]) {
                break;
            }
            self.put(slots, place, self.heap[parent]);
            place = parent;
        }
        self.put(slots, place, moving);
        place
    }

    fn sift_down<K>(&mut self, slots: &mut Slots<K>, mut place: usize) {
        let moving = self.heap[place];
        loop {
            let children = self.heap.children(place).iter().zip(place * CHILDREN + 1..);
            let earliest = children.reduce(|a, b| if b.0.is_before(a.0) { b } else { a });
            let Some((&earliest, its_place)) = earliest.filter(|(child, _)| child.is_before(&moving)) else {
                break;
            };
            self.put(slots, place, earliest);
            place = its_place;
        }
        self.put(slots, place, moving);
    }

    fn put<K>(&mut self, slots: &mut Slots<K>, place: usize, delay: Delay) {
        self.heap[place] = delay;
        // A heap never outgrows the slots, and slots are numbered by u32.
        #[expect(clippy::cast_possible_truncation, reason = "places are fewer than slots, whose ids are u32")]
        {
            slots[delay.slot].link = place as u32;
        }
    }
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
                (0..100).map(|key| slots.insert(key, key, Priority::NORMAL).unwrap()).collect();
            let (mut delays, mut expected) = (Delays::default(), BTreeMap::new());
            for (arrival, call) in calls.into_iter().enumerate() {
                match call {
                    Call::Schedule(key, at) => {
                        match expected.insert(key, (at, arrival)) {
                            None => delays.insert(&mut slots, ids[key], at),
                            Some(_) => delays.reschedule(&mut slots, ids[key], at),
                        }
                        prop_assert_eq!(delays.at(&slots, ids[key]), at);
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
