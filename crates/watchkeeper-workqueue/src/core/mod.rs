//! The queue as a state machine: an input and the time go in, an answer comes out.
//!
//! Nothing in here waits, locks, spawns or reads a clock. Times are nanoseconds since the clock's origin.
//!
//! ```text
//!              add                      pop
//!   (absent) ───────▶ Queued ─────────────────────▶ Processing ──add──▶ Dirty
//!       │               ▲  ▲                          │    ▲              │
//!       │ add_after     │  │ time comes               │    └─ finish ─────┤ (its rerun decides)
//!       ▼               │  │                          ▼                   ▼
//!   Scheduled ──add─────┘  └── BackingOff ◀──retry── finish ──▶ (absent) or Queued or Scheduled
//! ```

#![expect(
    clippy::inline_always,
    reason = "the path of every key: a fifth fewer instructions than with calls"
)]

mod calls;
mod delays;
mod ready;
mod slots;
mod table;
mod times;

use std::{collections::HashMap, mem, sync::Arc};

use foldhash::fast::RandomState;

pub(crate) use self::{
    calls::{Add, Backoff, Finished, Offered, Pending, Popped, Standing, Token, Verdict, Wish},
    slots::kept_hash,
    times::{Durations, RunningNanos},
};
use self::{
    delays::Delays,
    ready::Ready,
    slots::{SlotId, Slots, State},
    times::Times,
};
use crate::{Admission, Cause, Causes, Priority, fill::fill};

/// At most this many waiting keys are moved into line in one step, so that a million delays that end together
/// hold the lock for some fifty microseconds at a time.
const PROMOTE_AT_ONCE: usize = 64;

/// From this length on, adds are taken in many at a time. (Exploring interleavings needs it within reach.)
const LONG_LINE: usize = if cfg!(shuttle) { 2 } else { 16 * 1024 };

/// What was added to a key while it was processed.
#[derive(Debug, Clone, Copy)]
struct Rerun {
    pending: Pending,
    priority: Priority,
    since: u64,
}

/// Returns the delay in nanoseconds after `failures` failures: the last one of the schedule holds for all that follow.
pub(crate) fn scheduled_delay(schedule: &[u64], failures: usize) -> u64 {
    schedule.get(failures).or(schedule.last()).copied().unwrap_or(0)
}

/// The whole state of a queue.
///
/// Invariants: a key has at most one slot; a slot is in line, among the delays, or handed out, never two
/// of them; a rerun exists exactly for `Dirty` slots; a token finishes a slot only while its generation is the
/// slot's link.
#[derive(Debug)]
pub(crate) struct Core<K> {
    slots: Slots<K>,
    ready: Ready,
    delays: Delays,
    reruns: HashMap<SlotId, Rerun, RandomState>,
    causes: Vec<Causes>,
    times: Option<Times>,
    /// Nanoseconds to wait after so many failures; the last for all that follow. Empty when the limiter has to be asked.
    schedule: Arc<[u64]>,
    processing: usize,
    /// Keys that became due for work since last asked; what `adds_total` counts.
    newly_due: u64,
    generation: u32,
    is_shut_down: bool,
}

impl<K: Eq + Clone> Core<K> {
    pub(crate) fn new(patience: u32, keeps_times: bool, schedule: Arc<[u64]>) -> Self {
        Self {
            slots: Slots::new(),
            ready: Ready::new(patience),
            delays: Delays::default(),
            reruns: HashMap::default(),
            causes: Vec::new(),
            times: keeps_times.then(Times::default),
            schedule,
            processing: 0,
            newly_due: 0,
            generation: 0,
            is_shut_down: false,
        }
    }

    /// True when the next call needs the real time; otherwise any value will do, and reading a clock is saved.
    #[inline]
    pub(crate) fn needs_time(&self) -> bool {
        self.times.is_some() || self.delays.len() > 0
    }

    /// True when what such an add comes to depends on what time it is.
    pub(crate) fn needs_time_for(&self, wish: Wish) -> bool {
        match wish {
            Wish::Pending(Pending::Now | Pending::Immediate) => false,
            Wish::Retry(Backoff::Since(_)) => self.schedule.iter().any(|&delay| delay > 0),
            Wish::Pending(Pending::Scheduled(_) | Pending::Backoff(_)) | Wish::Retry(Backoff::Until(_)) => {
                true
            }
        }
    }

    /// True when nothing but adding and taking goes on: no delay to watch, no end to announce, nobody to report to.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.needs_time() && !self.may_end()
    }

    /// True when the queue is shut down and has nothing in line: somebody may wait for just that.
    #[inline]
    pub(crate) fn may_end(&self) -> bool {
        self.is_shut_down && self.ready.len() == 0
    }

    /// True when nothing that is posted with this priority can change which key is handed out next: others of it are
    /// in line before them.
    #[inline]
    pub(crate) fn is_waiting(&self, priority: Priority) -> bool {
        self.ready.is_waiting(priority)
    }

    /// True when so many keys are in line that a few more, taken in together, wait no longer for it; and that finding
    /// each of them alone is a trip to memory.
    #[inline]
    pub(crate) fn has_long_line(&self) -> bool {
        self.ready.len() >= LONG_LINE
    }

    /// True when keys whose time may have come just now are in line, so that workers should not have to wait for anybody.
    pub(crate) fn is_behind(&self) -> bool {
        self.ready.len() > 0 && self.delays.len() > 0
    }

    /// Gets ready for adds of keys with these hashes.
    pub(crate) fn fetch(&self, hashes: impl Iterator<Item = u32>) {
        self.slots.fetch(hashes);
    }

    /// Adds a key. Takes it from its owner when it is new to the queue.
    pub(crate) fn add(&mut self, hash: u32, offered: &mut impl Offered<K>, add: Add, now: u64) -> Admission {
        if self.is_shut_down {
            return Admission::Refused;
        }
        let Some(key) = offered.key() else {
            return Admission::Refused;
        };
        if let Some(id) = self.slots.find(hash, key) {
            return self.merge(id, add, now);
        }
        let Some(id) = self.slots.insert(hash, offered, add.priority) else {
            return Admission::Refused;
        };
        let pending = self.pending(id, add.wish);
        let is_failure = add.is_failure();
        self.note(id, add.cause, is_failure);
        self.place(id, pending, now, now)
    }

    /// [`add`](Self::add) of a [plain add](Add::PLAIN) to a queue that [is plain](Self::is_plain).
    #[inline(always)]
    pub(crate) fn add_plain(&mut self, hash: u32, offered: &mut impl Offered<K>) -> Admission {
        debug_assert!(self.is_plain(), "what else there is to see to is not seen to here");
        if self.is_shut_down {
            return Admission::Refused;
        }
        let Some(key) = offered.key() else {
            return Admission::Refused;
        };
        if let Some(id) = self.slots.find(hash, key) {
            let slot = &self.slots[id];
            // In line already, and nothing new is said about it.
            if slot.state == State::Queued && slot.priority >= Priority::NORMAL {
                return Admission::Merged;
            }
            return self.merge(id, Add::PLAIN, 0);
        }
        let Some(id) = self.slots.insert(hash, offered, Priority::NORMAL) else {
            return Admission::Refused;
        };
        self.ready.push_new(&mut self.slots, id, Priority::NORMAL);
        self.newly_due += 1;
        Admission::Queued
    }

    /// Adds a key that has a slot.
    fn merge(&mut self, id: SlotId, add: Add, now: u64) -> Admission {
        let pending = self.pending(id, add.wish);
        let is_failure = add.is_failure();
        self.note(id, add.cause, is_failure);
        match self.slots[id].state {
            // Freed slots are not in the table.
            State::Free | State::Queued => {
                self.ready.raise(&mut self.slots, id, add.priority);
                Admission::Merged
            }
            State::Scheduled | State::BackingOff => {
                let current = self.waiting(id);
                self.slots[id].priority = self.slots[id].priority.max(add.priority);
                let merged = current.min(pending);
                if merged == current {
                    return self.waiting_admission(id);
                }
                self.delays.remove(id);
                self.place(id, merged, now, now)
            }
            State::Processing | State::Dirty => {
                self.slots[id].state = State::Dirty;
                self.rerun(id, Rerun { pending, priority: add.priority, since: now });
                Admission::Deferred
            }
        }
    }

    /// Moves keys whose time has come into line. Returns how many.
    #[inline]
    pub(crate) fn promote(&mut self, now: u64) -> usize {
        let mut promoted = 0;
        while promoted < PROMOTE_AT_ONCE
            && let Some(id) = self.delays.pop_due(now)
        {
            self.enqueue(id, now);
            self.newly_due += 1;
            promoted += 1;
        }
        promoted
    }

    /// Hands out the next key, if there is one.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Popped<K>> {
        let mut popped = None;
        self.pop_to(&mut popped, now);
        popped
    }

    /// Hands out the next key, if there is one, to an empty place: it is written there and nowhere else.
    #[inline(always)]
    pub(crate) fn pop_to(&mut self, to: &mut Option<Popped<K>>, now: u64) -> bool {
        let Some(id) = self.ready.pop(&mut self.slots) else { return false };
        let Some(key) = self.slots.key(id).cloned() else { return false };
        self.generation = self.generation.wrapping_add(1);
        let slot = &mut self.slots[id];
        slot.state = State::Processing;
        slot.link = self.generation;
        let standing = Standing::new(slot.failures, slot.priority);
        self.processing += 1;
        if let Some(times) = &mut self.times {
            times.start(id, now);
        }
        let token = Token::new(id, self.generation);
        fill(to, Popped { key, token, causes: Causes::default(), standing });
        if let Some((popped, causes)) = to.as_mut().zip(self.causes.get_mut(id as usize)) {
            mem::swap(&mut popped.causes, causes);
        }
        true
    }

    /// Ends the work on a key that leaves the queue with nothing to remember, when nobody has to hear of it: no metrics,
    /// nobody who waits for the end. `None`, and nothing happens, in every other case.
    ///
    /// Adds of the key that are posted and not yet taken in may come after it as well as before: they find the
    /// key gone and bring it back, just as they would have had it come back. Not so a failure that is to be forgotten:
    /// `is_posted` says whether there may be one of a key with this hash.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        token: Token,
        verdict: Verdict,
        is_posted: impl FnOnce(u32) -> bool,
    ) -> Option<K> {
        if self.times.is_some() || self.may_end() {
            return None;
        }
        let slot = self.slots.get(token.slot())?;
        let has_nothing_to_remember = match verdict {
            Verdict::Forget => !is_posted(slot.hash),
            Verdict::Done => slot.failures == 0,
            Verdict::Retry(_) | Verdict::RequeueAt(_) | Verdict::PutBack(_) => false,
        };
        let is_current = slot.state == State::Processing && slot.link == token.generation();
        if !is_current || !has_nothing_to_remember {
            return None;
        }
        self.processing -= 1;
        self.release(token.slot())
    }

    /// Ends the work on a key. `None` when the token is stale: that work was finished before.
    pub(crate) fn finish(
        &mut self,
        token: Token,
        verdict: Verdict,
        causes: Causes,
        now: u64,
    ) -> Option<Finished<K>> {
        let id = token.slot();
        if !self.is_current(token) {
            return None;
        }
        if let Some(times) = &mut self.times {
            times.finish(id, now);
        }
        self.processing -= 1;
        let rerun = if self.slots[id].state == State::Dirty { self.reruns.remove(&id) } else { None };

        let asked = match verdict {
            Verdict::Done => None,
            Verdict::Forget => {
                self.slots[id].failures = 0;
                None
            }
            Verdict::Retry(backoff) => {
                let pending = self.pending(id, Wish::Retry(backoff));
                let failures = self.slots[id].failures.saturating_add(1);
                self.slots[id].failures = failures;
                if !self.is_shut_down {
                    let mut all = causes;
                    all.push(Cause::Retry(u32::from(failures)));
                    self.prepend(id, all);
                }
                Some(pending)
            }
            Verdict::PutBack(at) => {
                if !self.is_shut_down && !causes.is_empty() {
                    self.prepend(id, causes);
                }
                Some(Pending::Scheduled(at))
            }
            Verdict::RequeueAt(at) => {
                self.slots[id].failures = 0;
                if !self.is_shut_down {
                    self.note(id, Some(Cause::Requeue), false);
                }
                Some(Pending::Scheduled(at))
            }
        }
        // Work that asks for more after shutdown would keep the queue from ever draining.
        .filter(|_| !self.is_shut_down);

        let own_priority = self.slots[id].priority;
        let (pending, priority, since) = match (rerun, asked) {
            (None, None) => {
                return Some(Finished { admission: None, released: self.release(id) });
            }
            (Some(rerun), None) => (rerun.pending, rerun.priority, rerun.since),
            (None, Some(asked)) => (asked, own_priority, now),
            (Some(rerun), Some(asked)) => {
                (rerun.pending.min(asked), rerun.priority.max(own_priority), rerun.since)
            }
        };
        self.slots[id].priority = priority;
        // What was due before was counted when it was added.
        let was_counted = rerun.is_some_and(|rerun| rerun.pending.at().is_none());
        let due_before = self.newly_due;
        let admission = self.place(id, pending, since, now);
        if was_counted {
            self.newly_due = due_before;
        }
        Some(Finished { admission: Some(admission), released: None })
    }

    /// Drops a waiting add. A key that is in line or being processed is not touched.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> Option<K> {
        let id = self.find_waiting(hash, key)?;
        self.delays.remove(id);
        self.release(id)
    }

    /// Moves a waiting add to a later time. False when there is none; an earlier time changes nothing.
    pub(crate) fn postpone(&mut self, hash: u32, key: &K, at: u64) -> bool {
        let Some(id) = self.find_waiting(hash, key) else {
            return false;
        };
        if self.delays.at(id) < at {
            self.delays.reschedule(id, at);
        }
        true
    }

    /// Forgets the failures of a key.
    pub(crate) fn forget(&mut self, hash: u32, key: &K) {
        if let Some(id) = self.slots.find(hash, key) {
            self.slots[id].failures = 0;
        }
    }

    /// Failures of a key since its last success.
    pub(crate) fn failures(&self, hash: u32, key: &K) -> u32 {
        self.slots.find(hash, key).map_or(0, |id| u32::from(self.slots[id].failures))
    }

    /// Failures of the key a token stands for.
    #[inline]
    pub(crate) fn failures_of(&self, token: Token) -> u32 {
        if self.is_current(token) { u32::from(self.slots[token.slot()].failures) } else { 0 }
    }

    /// Refuses adds from now on and drops what still waits for its time; returns those keys.
    pub(crate) fn shut_down(&mut self) -> Vec<K> {
        self.is_shut_down = true;
        let slots = &mut self.slots;
        self.reruns.retain(|&id, rerun| {
            let is_due = rerun.pending.at().is_none();
            if !is_due {
                slots[id].state = State::Processing;
            }
            is_due
        });
        let waiting: Vec<SlotId> = self.delays.take_all().collect();
        waiting.into_iter().filter_map(|id| self.release(id)).collect()
    }

    /// True when shut down and nothing will ever be handed out again.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.is_shut_down && self.ready.len() == 0 && self.reruns.is_empty()
    }

    /// True when nothing is queued, dirty or being processed.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.len() == 0 && self.processing == 0
    }

    #[inline]
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.delays.next_at()
    }

    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.delays.len()
    }

    pub(crate) fn processing(&self) -> usize {
        self.processing
    }

    #[inline]
    pub(crate) fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// Keys that need work now: in line, or added again while processed.
    pub(crate) fn depth(&self) -> usize {
        self.ready.len() + self.reruns.values().filter(|rerun| rerun.pending.at().is_none()).count()
    }

    pub(crate) fn take_newly_due(&mut self) -> u64 {
        mem::take(&mut self.newly_due)
    }

    pub(crate) fn take_durations(&mut self) -> Durations {
        self.times.as_mut().map_or_else(Durations::default, Times::take_last)
    }

    pub(crate) fn running(&self, now: u64) -> RunningNanos {
        self.times.as_ref().map_or_else(RunningNanos::default, |times| times.running(now))
    }

    /// Notes that a key is wanted again once its present work ends.
    fn rerun(&mut self, id: SlotId, new: Rerun) {
        let earlier = self.reruns.get(&id).copied();
        let merged = earlier.map_or(new, |old| Rerun {
            pending: old.pending.min(new.pending),
            priority: old.priority.max(new.priority),
            since: old.since,
        });
        let was_due = earlier.is_some_and(|old| old.pending.at().is_none());
        self.newly_due += u64::from(!was_due && merged.pending.at().is_none());
        self.reruns.insert(id, merged);
    }

    #[inline(always)]
    fn is_current(&self, token: Token) -> bool {
        self.slots.get(token.slot()).is_some_and(|slot| {
            matches!(slot.state, State::Processing | State::Dirty) && slot.link == token.generation()
        })
    }

    /// When a key is wanted that asks for this, before the failure it may report is counted.
    #[inline(always)]
    fn pending(&self, id: SlotId, wish: Wish) -> Pending {
        match wish {
            Wish::Pending(pending) => pending,
            Wish::Retry(Backoff::Until(at)) => Pending::Backoff(at),
            Wish::Retry(Backoff::Since(failed_at)) => {
                let delay = scheduled_delay(&self.schedule, self.slots[id].failures.into());
                Pending::Backoff(failed_at.saturating_add(delay))
            }
        }
    }

    fn find_waiting(&self, hash: u32, key: &K) -> Option<SlotId> {
        let id = self.slots.find(hash, key)?;
        matches!(self.slots[id].state, State::Scheduled | State::BackingOff).then_some(id)
    }

    fn waiting(&self, id: SlotId) -> Pending {
        let at = self.delays.at(id);
        match self.slots[id].state {
            State::BackingOff => Pending::Backoff(at),
            _ => Pending::Scheduled(at),
        }
    }

    fn waiting_admission(&self, id: SlotId) -> Admission {
        match self.slots[id].state {
            State::BackingOff => Admission::BackingOff,
            _ => Admission::Scheduled,
        }
    }

    /// Puts a slot that is nowhere into line or among the delays.
    #[inline(always)]
    fn place(&mut self, id: SlotId, pending: Pending, since: u64, now: u64) -> Admission {
        let (state, at) = match pending {
            Pending::Backoff(at) if at > now => (State::BackingOff, at),
            Pending::Scheduled(at) if at > now => (State::Scheduled, at),
            _ => {
                self.enqueue(id, since);
                self.newly_due += 1;
                return Admission::Queued;
            }
        };
        self.slots[id].state = state;
        self.delays.insert(id, at);
        self.waiting_admission(id)
    }

    #[inline(always)]
    fn enqueue(&mut self, id: SlotId, since: u64) {
        self.slots[id].state = State::Queued;
        self.ready.push(&mut self.slots, id);
        if let Some(times) = &mut self.times {
            times.queue(id, since);
        }
    }

    #[inline(always)]
    fn release(&mut self, id: SlotId) -> Option<K> {
        if let Some(causes) = self.causes.get_mut(id as usize) {
            *causes = Causes::default();
        }
        let key = self.slots.remove(id);
        if self.slots.live() == 0 && self.slots.shrink_after_burst() {
            self.causes = Vec::new();
            self.ready.reset();
            self.delays.shrink();
            self.times.iter_mut().for_each(Times::reset);
        }
        key
    }

    #[inline(always)]
    fn note(&mut self, id: SlotId, cause: Option<Cause>, is_failure: bool) {
        if is_failure {
            self.slots[id].failures = self.slots[id].failures.saturating_add(1);
        }
        if let Some(cause) = cause {
            self.causes_of(id).push(cause);
        }
    }

    /// Puts the causes a key was handed out with before those it was given since.
    fn prepend(&mut self, id: SlotId, mut causes: Causes) {
        causes.append(self.take_causes(id));
        *self.causes_of(id) = causes;
    }

    fn causes_of(&mut self, id: SlotId) -> &mut Causes {
        let index = id as usize;
        if self.causes.len() <= index {
            self.causes.resize_with(index + 1, Causes::default);
        }
        &mut self.causes[index]
    }

    #[inline(always)]
    fn take_causes(&mut self, id: SlotId) -> Causes {
        self.causes.get_mut(id as usize).map(mem::take).unwrap_or_default()
    }
}
