//! The queue as a state machine: a call and the time in, a result out.
//!
//! The core does not wait, lock, spawn or read a clock. Times are nanoseconds since the clock's origin.
//!
//! ```text
//!              add                      pop
//!   (absent) ───────▶ Queued ─────────────────────▶ Processing ──add──▶ Processing with a rerun
//!       │               ▲  ▲                            │                    │
//!       │ add_after     │  │ due                        ▼                    ▼
//!       ▼               │  │                          finish               finish
//!   Scheduled ──add─────┘  └── BackingOff ◀──retry──────┴──▶ (absent) or Queued or Scheduled
//! ```

mod calls;
mod ready;
mod slots;

use std::{collections::BTreeSet, mem, time::Duration};

use slab::Slab;

pub(crate) use self::calls::{Add, Dequeued, Finished, Outcome, Pending, Token};
use self::{
    ready::Ready,
    slots::{Entry, Slot, Slots, State},
};
use crate::{Admission, Cause, Causes, Priority, QueueStats};

/// The largest number of due keys that one call makes ready. A million delays that end together then lock the queue for
/// some ten microseconds at a time.
const PROMOTED_AT_ONCE: usize = 64;

/// The state of a queue.
///
/// Invariants: a key has at most one entry; an entry is an element of exactly one of `ready`, `delays` and `work`, the one
/// that its state names.
#[derive(Debug)]
pub(crate) struct Core<K> {
    slots: Slots<K>,
    ready: Ready,
    /// Waiting entries by due time in nanoseconds, then by the sequence of delays, which wraps after 2³² of them.
    delays: BTreeSet<(u64, u32, Slot)>,
    last_sequence: u32,
    work: Slab<Work>,
    /// The counters. [`Core::stats`] adds the gauges.
    counters: QueueStats,
    pub(crate) is_shut_down: bool,
}

/// A run in progress.
#[derive(Debug)]
struct Work {
    slot: Slot,
    rerun: Option<Rerun>,
}

/// The run that was requested by adds while the key was being processed.
#[derive(Debug, Clone, Copy)]
struct Rerun {
    pending: Pending,
    priority: Priority,
    since_nanos: u64,
}

impl Rerun {
    fn is_due(&self) -> bool {
        self.pending.at_nanos().is_none()
    }
}

impl<K: Eq + Clone> Core<K> {
    pub(crate) fn new(starvation_limit: u32) -> Self {
        Self {
            slots: Slots::new(),
            ready: Ready::new(starvation_limit),
            delays: BTreeSet::new(),
            last_sequence: 0,
            work: Slab::new(),
            counters: QueueStats::default(),
            is_shut_down: false,
        }
    }

    pub(crate) fn find(&self, hash: u32, key: &K) -> Option<Slot> {
        self.slots.find(hash, key)
    }

    /// Returns whether an add without a delay merges into a queued key, which needs no time.
    pub(crate) fn merges_at_once(&self, slot: Slot, pending: Pending) -> bool {
        pending.at_nanos().is_none() && self.slots[slot].state == State::Queued && !self.is_shut_down
    }

    /// Adds a key whose entry is in `slot`, if it has one. Returns the key too, if the queue did not take it, to be dropped after
    /// the queue is unlocked.
    pub(crate) fn add(
        &mut self,
        slot: Option<Slot>,
        (hash, key): (u32, K),
        add: Add,
        now_nanos: u64,
    ) -> (Admission, Option<K>) {
        if self.is_shut_down {
            return (Admission::Refused, Some(key));
        }
        self.counters.retries += u64::from(add.pending.at_nanos().is_some());
        if let Some(slot) = slot {
            return (self.merge(slot, add, now_nanos), Some(key));
        }
        let pending = add.pending;
        let mut entry = Entry::new(key, hash, add.priority);
        entry.record(add);
        let Some(slot) = self.slots.insert(entry) else {
            return (Admission::Refused, None);
        };
        (self.place(slot, pending, now_nanos, now_nanos), None)
    }

    /// Adds a key that has an entry.
    pub(crate) fn merge(&mut self, slot: Slot, add: Add, now_nanos: u64) -> Admission {
        let Add { pending, priority, .. } = add;
        let entry = &mut self.slots[slot];
        entry.record(add);
        let current = match entry.state {
            State::Queued => {
                self.ready.raise(&mut self.slots, slot, priority);
                return Admission::Merged;
            }
            State::Processing => {
                let work = entry.position as usize;
                self.merge_rerun(work, Rerun { pending, priority, since_nanos: now_nanos });
                return Admission::Deferred;
            }
            State::Scheduled => Pending::Scheduled(entry.at_nanos),
            State::BackingOff => Pending::Backoff(entry.at_nanos),
        };
        entry.priority = entry.priority.max(priority);
        if pending >= current {
            return current.admission();
        }
        self.remove_delay(slot);
        self.place(slot, pending, now_nanos, now_nanos)
    }

    /// Records that a key is to be processed again after its present run.
    fn merge_rerun(&mut self, work: usize, new: Rerun) {
        let rerun = &mut self.work[work].rerun;
        let was_due = rerun.as_ref().is_some_and(Rerun::is_due);
        let merged = rerun.map_or(new, |old| Rerun {
            pending: old.pending.min(new.pending),
            priority: old.priority.max(new.priority),
            since_nanos: old.since_nanos,
        });
        *rerun = Some(merged);
        self.counters.adds += u64::from(!was_due && merged.is_due());
    }

    /// Makes due keys ready, up to [`PROMOTED_AT_ONCE`].
    pub(crate) fn promote(&mut self, now_nanos: u64) {
        for _ in 0..PROMOTED_AT_ONCE {
            if !self.has_due(now_nanos) {
                return;
            }
            if let Some((due_nanos, _, slot)) = self.delays.pop_first() {
                self.enqueue(slot, due_nanos);
            }
        }
    }

    /// Dequeues a key.
    pub(crate) fn pop(&mut self, now_nanos: u64) -> Option<Dequeued<K>> {
        let slot = self.ready.choose()?;
        // First, because a clone may panic.
        let key = self.slots[slot].key.clone();
        self.ready.unlink(&mut self.slots, slot);
        // A slot has at most one run, so the number of runs fits the type of a slot.
        let work = Slot::try_from(self.work.insert(Work { slot, rerun: None })).unwrap_or(Slot::MAX);
        let entry = &mut self.slots[slot];
        (entry.state, entry.position) = (State::Processing, work);
        let ready_since_nanos = mem::replace(&mut entry.at_nanos, now_nanos);
        self.counters.queue_duration.observe(now_nanos.saturating_sub(ready_since_nanos));
        Some(Dequeued {
            key,
            causes: entry.take_causes(),
            token: Token(work),
            failures: u32::from(entry.failures),
            priority: entry.priority,
        })
    }

    /// Finishes a run, whose token must not be used again.
    pub(crate) fn finish(
        &mut self,
        token: Token,
        outcome: Outcome,
        causes: Causes,
        now_nanos: u64,
    ) -> Finished<K> {
        let Work { slot, rerun } = self.work.remove(token.0 as usize);
        let entry = &mut self.slots[slot];
        self.counters.work_duration.observe(now_nanos.saturating_sub(entry.at_nanos));
        let failures_before = entry.failures;
        match outcome {
            Outcome::Done | Outcome::PutBackUntil(_) => {}
            Outcome::Forget | Outcome::RequeueAt(_) => entry.failures = 0,
            Outcome::RetryAt(_) => entry.failures = failures_before.saturating_add(1),
        }
        let has_forgotten = failures_before > 0 && entry.failures == 0;
        let requested = match outcome {
            // After shutdown, a run that requests another one would keep the queue from draining.
            _ if self.is_shut_down => None,
            Outcome::Done | Outcome::Forget => None,
            Outcome::RetryAt(until_nanos) => {
                self.counters.retries += 1;
                entry.prepend_causes(causes.with(Cause::Retry(u32::from(entry.failures))));
                Some(Pending::Backoff(until_nanos))
            }
            Outcome::RequeueAt(at_nanos) => {
                self.counters.retries += 1;
                entry.add_cause(Cause::Requeue);
                Some(Pending::Scheduled(at_nanos))
            }
            Outcome::PutBackUntil(at_nanos) => {
                entry.prepend_causes(causes);
                Some(Pending::Scheduled(at_nanos))
            }
        };
        let (pending, priority, since_nanos) = match (rerun, requested) {
            (None, None) => {
                let removed = Some(self.slots.remove(slot));
                return Finished { admission: None, removed, has_forgotten: failures_before > 0 };
            }
            (Some(rerun), None) => (rerun.pending, rerun.priority, rerun.since_nanos),
            (None, Some(requested)) => (requested, entry.priority, now_nanos),
            (Some(rerun), Some(requested)) => {
                (rerun.pending.min(requested), rerun.priority.max(entry.priority), rerun.since_nanos)
            }
        };
        entry.priority = priority;
        let adds_before = self.counters.adds;
        let admission = Some(self.place(slot, pending, since_nanos, now_nanos));
        if rerun.as_ref().is_some_and(Rerun::is_due) {
            // Counted when it was added.
            self.counters.adds = adds_before;
        }
        Finished { admission, removed: None, has_forgotten }
    }

    /// Removes a waiting key and returns it. Has no effect on a key that is queued or being processed.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> Option<K> {
        let slot = self.slots.find(hash, key).filter(|&slot| self.slots[slot].is_waiting())?;
        self.remove_delay(slot);
        Some(self.slots.remove(slot))
    }

    /// Moves a waiting key to a later time. Returns whether the key waits; an earlier time has no effect.
    pub(crate) fn postpone(&mut self, hash: u32, key: &K, at_nanos: u64) -> bool {
        let slot = self.slots.find(hash, key).filter(|&slot| self.slots[slot].is_waiting());
        if let Some(slot) = slot.filter(|&slot| self.slots[slot].at_nanos < at_nanos) {
            self.remove_delay(slot);
            self.delay(slot, at_nanos);
        }
        slot.is_some()
    }

    /// Resets the failure count of a key.
    pub(crate) fn forget(&mut self, hash: u32, key: &K) {
        if let Some(slot) = self.slots.find(hash, key) {
            self.slots[slot].failures = 0;
        }
    }

    /// Returns the failures of a key since its last success.
    pub(crate) fn failures(&self, hash: u32, key: &K) -> u32 {
        self.find(hash, key).map_or(0, |slot| u32::from(self.slots[slot].failures))
    }

    /// Refuses adds from now on. Removes and returns the keys that wait for a time.
    pub(crate) fn shut_down(&mut self) -> Vec<K> {
        self.is_shut_down = true;
        for (_, work) in &mut self.work {
            work.rerun = work.rerun.filter(Rerun::is_due);
        }
        mem::take(&mut self.delays).into_iter().map(|(_, _, slot)| self.slots.remove(slot)).collect()
    }

    /// Returns whether the queue is shut down and no key will be dequeued again.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_shut_down && self.queued() == 0 && self.work.iter().all(|(_, work)| work.rerun.is_none())
    }

    /// Returns whether no key is queued or being processed.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued() == 0 && self.processing() == 0
    }

    pub(crate) fn queued(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.delays.len()
    }

    pub(crate) fn processing(&self) -> usize {
        self.work.len()
    }

    pub(crate) fn has_due(&self, now_nanos: u64) -> bool {
        self.next_at_nanos().is_some_and(|at_nanos| at_nanos <= now_nanos)
    }

    pub(crate) fn next_at_nanos(&self) -> Option<u64> {
        self.delays.first().map(|(at_nanos, ..)| *at_nanos)
    }

    pub(crate) fn stats(&self, now_nanos: u64) -> QueueStats {
        let mut depth: Vec<(Priority, usize)> = self.ready.len_by_priority().collect();
        for rerun in self.work.iter().filter_map(|(_, work)| work.rerun).filter(Rerun::is_due) {
            match depth.binary_search_by(|(priority, _)| rerun.priority.cmp(priority)) {
                Ok(position) => depth[position].1 += 1,
                Err(position) => depth.insert(position, (rerun.priority, 1)),
            }
        }
        let running = || {
            let started = self.work.iter().map(|(_, work)| self.slots[work.slot].at_nanos);
            started.map(|started_nanos| Duration::from_nanos(now_nanos.saturating_sub(started_nanos)))
        };
        QueueStats {
            depth,
            waiting: self.waiting(),
            processing: self.processing(),
            unfinished_work: running().fold(Duration::ZERO, Duration::saturating_add),
            longest_running: running().max().unwrap_or_default(),
            ..self.counters.clone()
        }
    }

    fn remove_delay(&mut self, slot: Slot) {
        let Entry { at_nanos, position, .. } = self.slots[slot];
        self.delays.remove(&(at_nanos, position, slot));
    }

    fn delay(&mut self, slot: Slot, at_nanos: u64) {
        self.last_sequence = self.last_sequence.wrapping_add(1);
        self.delays.insert((at_nanos, self.last_sequence, slot));
        let entry = &mut self.slots[slot];
        (entry.at_nanos, entry.position) = (at_nanos, self.last_sequence);
    }

    /// Makes an entry that is in no structure ready, or adds it to the delays.
    fn place(&mut self, slot: Slot, pending: Pending, since_nanos: u64, now_nanos: u64) -> Admission {
        let Some(at_nanos) = pending.at_nanos().filter(|&at_nanos| at_nanos > now_nanos) else {
            self.enqueue(slot, since_nanos);
            return Admission::Queued;
        };
        self.delay(slot, at_nanos);
        self.slots[slot].state = if pending.is_failure() { State::BackingOff } else { State::Scheduled };
        pending.admission()
    }

    fn enqueue(&mut self, slot: Slot, since_nanos: u64) {
        self.slots[slot].at_nanos = since_nanos;
        self.ready.push(&mut self.slots, slot);
        self.counters.adds += 1;
    }
}
