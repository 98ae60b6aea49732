//! The line: one first-in-first-out lane for each priority in use.

#![expect(
    clippy::inline_always,
    reason = "the path of every key: a fifth fewer instructions than with calls"
)]

use super::slots::{NO_SLOT, SlotId, Slots};
use crate::Priority;

/// Keys that may be handed out now.
///
/// Lanes are intrusive lists through the slots' links, so a queued key costs no allocation. As long as only one
/// priority is in use the lists are singly linked; the first key of another priority adds the backward links
/// (four bytes a slot) that moving a key to another lane needs.
///
/// **No starvation.** Each `pop` that leaves a waiting lane aside counts against it. A lane that was left aside
/// `patience` times goes before all others, so with `L` lanes waiting, each is served at least once in
/// `patience + L` pops.
#[derive(Debug)]
pub(super) struct Ready {
    /// Highest priority first. A lane stays when it runs empty: there are at most 256.
    lanes: Vec<Lane>,
    len: usize,
    patience: u32,
    previous: Option<Vec<SlotId>>,
}

#[derive(Debug)]
struct Lane {
    priority: Priority,
    head: SlotId,
    tail: SlotId,
    left_aside: u32,
}

impl Ready {
    pub(super) fn new(patience: u32) -> Self {
        Self { lanes: Vec::new(), len: 0, patience: patience.max(1), previous: None }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether a key of this priority is in line.
    #[inline]
    pub(super) fn is_waiting(&self, priority: Priority) -> bool {
        self.lanes.iter().any(|lane| lane.priority == priority && lane.head != NO_SLOT)
    }

    /// Puts a slot at the end of the lane of its priority.
    #[inline(always)]
    pub(super) fn push<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let slot = &mut slots[id];
        slot.link = NO_SLOT;
        let priority = slot.priority;
        self.push_new(slots, id, priority);
    }

    /// [`push`](Self::push) of a slot of this priority that nothing was done with yet.
    #[inline(always)]
    pub(super) fn push_new<K>(&mut self, slots: &mut Slots<K>, id: SlotId, priority: Priority) {
        let lane = match self.lanes.as_slice() {
            [only] if only.priority == priority => 0,
            _ => self.lane(slots, priority),
        };
        let lane = &mut self.lanes[lane];
        let tail = std::mem::replace(&mut lane.tail, id);
        if tail == NO_SLOT {
            lane.head = id;
        } else {
            slots[tail].link = id;
        }
        if let Some(previous) = &mut self.previous {
            set(previous, id, tail);
        }
        self.len += 1;
    }

    /// Takes the next slot out of line.
    #[inline(always)]
    pub(super) fn pop<K>(&mut self, slots: &mut Slots<K>) -> Option<SlotId> {
        if let [only] = self.lanes.as_mut_slice() {
            // One priority only, as in most queues: nobody to choose from, and no backward links to keep.
            let id = only.head;
            if id == NO_SLOT {
                return None;
            }
            only.head = slots[id].link;
            if only.head == NO_SLOT {
                only.tail = NO_SLOT;
            }
            self.len -= 1;
            return Some(id);
        }
        let lane = self.choose()?;
        let id = self.lanes[lane].head;
        self.unlink(slots, lane, id, NO_SLOT);
        Some(id)
    }

    /// Moves a queued slot to the end of a higher lane. A lower priority changes nothing: whoever asked for
    /// the higher one still wants it.
    pub(super) fn raise<K>(&mut self, slots: &mut Slots<K>, id: SlotId, priority: Priority) {
        let current = slots[id].priority;
        if priority <= current {
            return;
        }
        // Making the new lane first is what brings the backward links into being.
        self.lane(slots, priority);
        let lane = self.lane(slots, current);
        let before = self.previous.as_ref().map_or(NO_SLOT, |previous| previous[id as usize]);
        self.unlink(slots, lane, id, before);
        slots[id].priority = priority;
        self.push(slots, id);
    }

    /// Forgets the backward links of slots that are no more. Only when nothing is queued.
    pub(super) fn reset(&mut self) {
        debug_assert_eq!(self.len, 0, "only an empty line can be reset");
        if let Some(previous) = &mut self.previous {
            *previous = Vec::new();
        }
    }

    fn unlink<K>(&mut self, slots: &mut Slots<K>, lane: usize, id: SlotId, before: SlotId) {
        let after = slots[id].link;
        let lane = &mut self.lanes[lane];
        if before == NO_SLOT {
            debug_assert_eq!(lane.head, id, "a slot with none before it is the head");
            lane.head = after;
        } else {
            slots[before].link = after;
        }
        if after == NO_SLOT {
            lane.tail = before;
        } else if let Some(previous) = &mut self.previous {
            set(previous, after, before);
        }
        self.len -= 1;
    }

    /// The lane to serve next, and the bookkeeping of those left aside.
    fn choose(&mut self) -> Option<usize> {
        let waiting = |lane: &&mut Lane| lane.head != NO_SLOT;
        let highest = self.lanes.iter().position(|lane| lane.head != NO_SLOT)?;
        let out_of_patience = self
            .lanes
            .iter()
            .enumerate()
            .filter(|(_, lane)| lane.head != NO_SLOT && lane.left_aside >= self.patience)
            // Of several, the one left aside longest; of equals, the higher priority, which comes first.
            .min_by_key(|(_, lane)| std::cmp::Reverse(lane.left_aside))
            .map(|(lane, _)| lane);
        let chosen = out_of_patience.unwrap_or(highest);
        self.lanes
            .iter_mut()
            .filter(waiting)
            .for_each(|lane| lane.left_aside = lane.left_aside.saturating_add(1));
        self.lanes[chosen].left_aside = 0;
        Some(chosen)
    }

    fn lane<K>(&mut self, slots: &Slots<K>, priority: Priority) -> usize {
        match self.lanes.binary_search_by(|lane| priority.cmp(&lane.priority)) {
            Ok(lane) => lane,
            Err(place) => {
                if self.lanes.len() == 1 && self.previous.is_none() {
                    self.previous = Some(self.backward_links(slots));
                }
                self.lanes.insert(place, Lane { priority, head: NO_SLOT, tail: NO_SLOT, left_aside: 0 });
                place
            }
        }
    }

    fn backward_links<K>(&self, slots: &Slots<K>) -> Vec<SlotId> {
        let mut previous = Vec::new();
        for lane in &self.lanes {
            let (mut before, mut id) = (NO_SLOT, lane.head);
            while id != NO_SLOT {
                set(&mut previous, id, before);
                (before, id) = (id, slots[id].link);
            }
        }
        previous
    }
}

fn set(column: &mut Vec<SlotId>, id: SlotId, value: SlotId) {
    let index = id as usize;
    if column.len() <= index {
        column.resize(index + 1, NO_SLOT);
    }
    column[index] = value;
}
