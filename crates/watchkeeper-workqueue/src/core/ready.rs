//! Keys that can be dequeued now: one first-in-first-out list per priority.

use std::mem;

use super::slots::{Entry, NO_SLOT, Slot, Slots, State};
use crate::Priority;

/// The ready keys.
///
/// Lists are linked through the entries, so a queued key needs no allocation and can be moved to another list.
///
/// **No starvation.** Each dequeue that passes over a waiting priority is counted. A priority that was passed over
/// `starvation_limit` times goes before all others, so with `n` priorities waiting, each is served at least once in
/// `starvation_limit + n` dequeues.
#[derive(Debug)]
pub(super) struct Ready {
    /// Highest priority first. Empty lists are kept: `Priority` has 256 values.
    lists: Vec<List>,
    len: usize,
    starvation_limit: u32,
}

#[derive(Debug)]
struct List {
    priority: Priority,
    head: Slot,
    tail: Slot,
    len: usize,
    passed_over: u32,
}

impl List {
    fn new(priority: Priority) -> Self {
        Self { priority, head: NO_SLOT, tail: NO_SLOT, len: 0, passed_over: 0 }
    }
}

impl Ready {
    pub(super) fn new(starvation_limit: u32) -> Self {
        Self { lists: vec![List::new(Priority::NORMAL)], len: 0, starvation_limit: starvation_limit.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns every priority used so far with the number of its keys, highest first.
    pub(super) fn len_by_priority(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.lists.iter().map(|list| (list.priority, list.len))
    }

    /// Appends an entry to the list of its priority.
    pub(super) fn push<K: Eq>(&mut self, slots: &mut Slots<K>, slot: Slot) {
        let priority = slots[slot].priority;
        let position = self.position(priority).unwrap_or_else(|position| {
            self.lists.insert(position, List::new(priority));
            position
        });
        let list = &mut self.lists[position];
        let previous = mem::replace(&mut list.tail, slot);
        match previous {
            NO_SLOT => list.head = slot,
            _ => slots[previous].next = slot,
        }
        list.len += 1;
        self.len += 1;
        let entry = &mut slots[slot];
        (entry.state, entry.previous, entry.next) = (State::Queued, previous, NO_SLOT);
    }

    /// Returns the slot to dequeue next, and counts the waiting lists that are passed over.
    pub(super) fn choose(&mut self) -> Option<Slot> {
        let mut chosen = None;
        for (position, list) in self.lists.iter_mut().enumerate().filter(|(_, list)| list.len > 0) {
            // Of several starved lists the one passed over most often is served; otherwise the highest priority.
            let urgency = if list.passed_over >= self.starvation_limit { list.passed_over } else { 0 };
            if chosen.is_none_or(|(_, highest)| urgency > highest) {
                chosen = Some((position, urgency));
            }
            list.passed_over = list.passed_over.saturating_add(1);
        }
        let list = &mut self.lists[chosen?.0];
        list.passed_over = 0;
        Some(list.head)
    }

    /// Moves a queued entry to the end of the list of a higher priority. A lower priority has no effect.
    pub(super) fn raise<K: Eq>(&mut self, slots: &mut Slots<K>, slot: Slot, priority: Priority) {
        if priority > slots[slot].priority {
            self.unlink(slots, slot);
            slots[slot].priority = priority;
            self.push(slots, slot);
        }
    }

    /// Removes a queued entry. The caller sets its new state.
    pub(super) fn unlink<K: Eq>(&mut self, slots: &mut Slots<K>, slot: Slot) {
        let Entry { previous, next, priority, .. } = slots[slot];
        let Ok(list) = self.position(priority) else { return };
        let list = &mut self.lists[list];
        match previous {
            NO_SLOT => list.head = next,
            _ => slots[previous].next = next,
        }
        match next {
            NO_SLOT => list.tail = previous,
            _ => slots[next].previous = previous,
        }
        list.len -= 1;
        self.len -= 1;
    }

    /// Returns the position of the list of a priority, or the position at which to insert it.
    fn position(&self, priority: Priority) -> Result<usize, usize> {
        self.lists.binary_search_by(|list| priority.cmp(&list.priority))
    }
}
