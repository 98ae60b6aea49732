//! The delays that end first.

use super::{
    delays::Delay,
    slots::{SlotId, Slots},
};

/// Children of a heap node.
const CHILDREN: usize = 4;

/// Delays, earliest first: a four-way heap in which every slot knows its own place (in its link), so that each is taken
/// out exactly.
#[derive(Debug, Default)]
pub(super) struct Soon {
    heap: Vec<Delay>,
}

impl Soon {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Delay> {
        self.heap.first()
    }

    pub(super) fn insert<K>(&mut self, slots: &mut Slots<K>, delay: Delay) {
        self.heap.push(delay);
        self.sift_up(slots, self.heap.len() - 1);
    }

    /// Takes out the delay of a slot that is in here.
    pub(super) fn remove<K>(&mut self, slots: &mut Slots<K>, slot: SlotId) {
        let place = slots[slot].link as usize;
        let Some(last) = self.heap.pop() else { return };
        if place < self.heap.len() {
            self.heap[place] = last;
            let place = self.sift_up(slots, place);
            self.sift_down(slots, place);
        }
    }

    /// Takes these in when there are no others.
    pub(super) fn fill<K>(&mut self, slots: &mut Slots<K>, delays: impl Iterator<Item = Delay>) {
        debug_assert!(self.heap.is_empty(), "others could be later than these");
        self.heap.extend(delays);
        self.sort(slots);
    }

    /// Takes out all but the earliest `count`, in order.
    pub(super) fn split_off<K>(&mut self, slots: &mut Slots<K>, count: usize) -> Vec<Delay> {
        self.sort(slots);
        self.heap.split_off(count)
    }

    pub(super) fn take_all(&mut self) -> Vec<Delay> {
        std::mem::take(&mut self.heap)
    }

    /// In order, they are a heap as well.
    fn sort<K>(&mut self, slots: &mut Slots<K>) {
        self.heap.sort_unstable_by_key(Delay::due);
        for (place, delay) in self.heap.iter().enumerate() {
            slots.set_place(delay.slot, place);
        }
    }

    fn sift_up<K>(&mut self, slots: &mut Slots<K>, mut place: usize) -> usize {
        let moving = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if moving.due() > self.heap[parent].due() {
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
            let first_child = place * CHILDREN + 1;
            let children = self.heap.iter().enumerate().skip(first_child).take(CHILDREN);
            let earliest = children.min_by_key(|(_, child)| child.due());
            let Some((its_place, &earliest)) = earliest.filter(|(_, child)| child.due() < moving.due())
            else {
                break;
            };
            self.put(slots, place, earliest);
            place = its_place;
        }
        self.put(slots, place, moving);
    }

    fn put<K>(&mut self, slots: &mut Slots<K>, place: usize, delay: Delay) {
        self.heap[place] = delay;
        slots.set_place(delay.slot, place);
    }
}
