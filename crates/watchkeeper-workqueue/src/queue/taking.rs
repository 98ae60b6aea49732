//! How keys get out, and how their work ends.

use std::{task::Waker, time::Duration};

use super::{BackoffSource, Inner, Key, TakenIn, WorkQueue};
use crate::{
    Admission, Causes, Get, Item, ItemToken, Priority,
    core::{Backoff, Core, Popped, Token, Verdict, scheduled_delay},
    sync::{Mutex, MutexGuard, lock_among_many},
    waiters::Ticket,
    worker::Last,
};

/// What a look at the queue came to.
pub(crate) enum Look<K> {
    /// A key, or `None` for ever after.
    Ready(Option<Popped<K>>),
    /// Nothing yet; this waiter is on the list, and watches the clock until then if it says so.
    Wait { ticket: Ticket, keep_time_until: Option<u64> },
}

/// What finishing a token came to.
pub(crate) struct Ended {
    pub(crate) was_current: bool,
    pub(crate) admission: Option<Admission>,
}

impl<K: Key> WorkQueue<K> {
    /// Waits for a key and takes it. `None` once the queue is shut down and nothing is left to hand out.
    ///
    /// The future may be dropped at any time without losing a key. While it waits it must be polled or dropped,
    /// not set aside: it may be the one that has been woken for a key.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(self)
    }

    /// Takes a key if one can be handed out now.
    pub fn try_get(&self) -> Option<Item<'_, K>> {
        let popped = self.operate(None, Core::pop)?;
        Some(Item::new(self, popped))
    }

    /// Finishes a key whose guard was taken off. False, and nothing happens, when that was done before.
    pub fn done(&self, token: ItemToken) -> bool {
        self.finish(token.token, Verdict::Done, Causes::default(), None).was_current
    }

    /// Takes a key, to an empty place, if one is in line before which nothing that was posted could come. Under the same
    /// lock, in the common case, the key that was taken `last` is finished.
    #[inline]
    pub(crate) fn take_next(&self, last: Option<Last>, place: &mut Option<Popped<K>>) -> bool {
        let mut inner = self.lock_for_worker();
        let mut released = None;
        if let Some(last) = last {
            let (token, verdict) = (last.token, last.verdict());
            released = inner.core.leave(token, verdict, |hash| self.shared.inbox.may_hold_failure(hash));
            if released.is_none() {
                self.finish_closely(inner, token, verdict, Causes::default(), None);
                inner = self.lock_for_worker();
            }
        }
        let is_waiting = inner.core.is_waiting(Priority::NORMAL);
        let is_taken = if inner.core.is_plain() && (is_waiting || !self.shared.inbox.is_open()) {
            let is_taken = inner.core.pop_to(place, 0);
            self.release_plainly(inner);
            is_taken
        } else if is_waiting {
            self.take_waiting(inner, place)
        } else {
            drop(inner);
            false
        };
        // The queue's copy of a key that left, let go where nothing is locked.
        drop(released);
        is_taken
    }

    /// Takes a key when one of normal priority is in line: what was posted comes after it, but what has become due may
    /// come before it.
    #[inline(never)]
    fn take_waiting<'q>(
        &'q self,
        mut inner: MutexGuard<'q, Inner<K>>,
        place: &mut Option<Popped<K>>,
    ) -> bool {
        let queued_before = inner.core.queued();
        let now = if inner.core.needs_time() { self.now() } else { 0 };
        inner.core.promote(now);
        let newly_queued = inner.core.queued().saturating_sub(queued_before);
        let is_taken = inner.core.pop_to(place, now);
        let announced = newly_queued.min(inner.core.queued());
        self.release(inner, announced, drop);
        is_taken
    }

    /// One look of a waiting `get`: a key, the end, or a place on the list of waiters.
    pub(crate) fn look(&self, mut ticket: Option<Ticket>, waker: &Waker) -> Look<K> {
        let mut inner = self.lock_for_worker();
        let queued_before = inner.core.queued();
        // Keys to be dropped once the lock is released.
        let mut merged = Vec::new();
        loop {
            // What was posted comes after the keys in line, so it can wait until they are taken: a worker that takes it in
            // for every key has no time for the keys.
            let now = if inner.core.is_waiting(Priority::NORMAL) {
                if inner.core.needs_time() { self.now() } else { 0 }
            } else {
                let mut taken = self.take_in(&mut inner, None);
                merged.append(&mut taken.merged);
                taken.now
            };
            inner.core.promote(now);
            let newly_queued = inner.core.queued().saturating_sub(queued_before);
            let popped = inner.core.pop(now);
            if popped.is_some() || inner.core.is_finished() {
                ticket.map(|ticket| inner.waiters.leave(ticket));
                let announced = newly_queued.min(inner.core.queued());
                self.release(inner, announced, drop);
                return Look::Ready(popped);
            }
            let ticket = *ticket.get_or_insert_with(|| inner.waiters.new_ticket());
            inner.waiters.wait(ticket, waker);
            // First say that somebody waits, then look into the inbox: see there.
            self.shared.inbox.set_has_waiters(true);
            if self.shared.inbox.is_empty() {
                let next_at = inner.core.next_at();
                if next_at.is_none() {
                    inner.waiters.stop_keeping_time(ticket);
                }
                let keep_time_until = next_at.filter(|&at| inner.waiters.keep_time(ticket, at));
                self.release(inner, 0, drop);
                return Look::Wait { ticket, keep_time_until };
            }
        }
    }

    /// Takes a `get` that was dropped off the list, and passes on what it was woken for.
    pub(crate) fn stop_waiting(&self, ticket: Ticket) {
        let mut inner = self.lock_for_worker();
        let was_woken = inner.waiters.leave(ticket);
        let queued_before = inner.core.queued();
        let TakenIn { merged, .. } = self.take_in(&mut inner, None);
        let newly_queued = inner.core.queued().saturating_sub(queued_before);
        let announced = (newly_queued + usize::from(was_woken)).min(inner.core.queued());
        self.release(inner, announced, drop);
        drop(merged);
    }

    #[inline]
    pub(crate) fn finish(&self, token: Token, verdict: Verdict, causes: Causes, now: Option<u64>) -> Ended {
        let mut inner = self.lock_for_worker();
        if let Some(released) =
            inner.core.leave(token, verdict, |hash| self.shared.inbox.may_hold_failure(hash))
        {
            drop(inner);
            // The queue's copy of a key that left, let go where nothing is locked.
            drop(released);
            return Ended { was_current: true, admission: None };
        }
        self.finish_closely(inner, token, verdict, causes, now)
    }

    #[inline(never)]
    fn finish_closely<'q>(
        &'q self,
        inner: MutexGuard<'q, Inner<K>>,
        token: Token,
        verdict: Verdict,
        causes: Causes,
        now: Option<u64>,
    ) -> Ended {
        let finished = self.operate_locked(inner, now, |core, now| core.finish(token, verdict, causes, now));
        let Some(finished) = finished else {
            return Ended { was_current: false, admission: None };
        };
        if matches!(verdict, Verdict::Retry(_) | Verdict::RequeueAt(_)) {
            self.count_retry(finished.admission);
        }
        drop(finished.released);
        Ended { was_current: true, admission: finished.admission }
    }

    /// Says that one more worker takes keys, or one less.
    pub(crate) fn count_worker(&self, comes: bool) {
        if comes {
            self.shared.inbox.add_worker();
        } else {
            self.shared.inbox.remove_worker();
        }
    }

    /// The lock, for a worker: producers let it go first.
    #[inline]
    fn lock_for_worker(&self) -> MutexGuard<'_, Inner<K>> {
        self.shared.state.0.try_lock().unwrap_or_else(|| self.lock_from_the_door())
    }

    #[cold]
    fn lock_from_the_door(&self) -> MutexGuard<'_, Inner<K>> {
        self.shared.inbox.wait_at_the_door();
        let lock = if self.shared.inbox.is_worker_among_many() { lock_among_many } else { Mutex::lock };
        let inner = lock(&self.shared.state.0);
        self.shared.inbox.leave_the_door();
        inner
    }

    /// The verdict on a key handed out under `token` whose work failed just now.
    pub(crate) fn retry_verdict(&self, token: Token) -> (Verdict, Option<u64>) {
        let (backoff, now) = self.backoff(|| self.operate(None, |core, _| core.failures_of(token)));
        (Verdict::Retry(backoff), now)
    }

    /// Returns the delay that a verdict of [`retry_verdict`](Self::retry_verdict) means for a key that had failed
    /// `failures` times before.
    pub(crate) fn retry_delay(&self, verdict: Verdict, now: Option<u64>, failures: u32) -> Duration {
        let nanos = match (verdict, &self.shared.backoff) {
            (Verdict::Retry(Backoff::Until(at)), _) => at.saturating_sub(now.unwrap_or(at)),
            (Verdict::Retry(Backoff::Since(_)), BackoffSource::Schedule { delays, .. }) => {
                scheduled_delay(delays, usize::try_from(failures).unwrap_or(usize::MAX))
            }
            _ => 0,
        };
        Duration::from_nanos(nanos)
    }
}
