//! Taking keys and finishing them.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{Key, WorkQueue};
use crate::{
    Admission, Item, Sleep,
    core::{Core, Dequeued, Finished, Outcome, Token},
    waiters::Ticket,
};

impl<K: Key> WorkQueue<K> {
    /// Waits for a key and dequeues it. Returns `None` after the queue was shut down and its last key was dequeued.
    ///
    /// The future can be dropped at any time without losing a key. While it waits it must be polled when woken, or dropped:
    /// it may have been woken for a key.
    #[doc(alias = "Get")]
    pub fn get(&self) -> Get<'_, K> {
        Get { queue: self, ticket: None, sleep: None }
    }

    /// Dequeues a key if one is queued.
    pub fn try_get(&self) -> Option<Item<'_, K>> {
        Some(Item::new(self, self.operate(Core::pop)?))
    }

    /// Finishes a run. Returns the state of the key, or `None` if the key left the queue.
    pub(crate) fn finish(&self, dequeued: Dequeued<K>, outcome: Outcome) -> Option<Admission> {
        let Dequeued { key, token, causes, .. } = dequeued;
        let Finished { admission, removed, has_forgotten } =
            self.operate(|core, now_nanos| core.finish(token, outcome, causes, now_nanos));
        drop(removed);
        if has_forgotten {
            self.shared.limiter.forget(&key);
        }
        admission
    }

    pub(crate) fn failures_of(&self, token: Token) -> u32 {
        self.lock().core.failures_of(token)
    }
}

/// The future of [`WorkQueue::get`].
#[must_use = "a future does nothing unless awaited"]
pub struct Get<'q, K: Key> {
    queue: &'q WorkQueue<K>,
    ticket: Option<Ticket>,
    /// The timer of this future while it is the timekeeper, with its end.
    sleep: Option<(u64, Sleep)>,
}

impl<'q, K: Key> Future for Get<'q, K> {
    type Output = Option<Item<'q, K>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker whose queue is never empty has to yield to other tasks.
        let budget = ready!(tokio::task::coop::poll_proceed(context));
        let queue = self.queue;
        loop {
            let now_nanos = queue.now_nanos();
            let mut inner = queue.lock();
            let _unlisted = self.ticket.take().map(|ticket| inner.waiters.leave(ticket));
            inner.core.promote(now_nanos);
            let dequeued = inner.core.pop(now_nanos);
            if dequeued.is_some() || inner.core.is_finished() {
                queue.shared.unlock(inner);
                budget.made_progress();
                return Poll::Ready(dequeued.map(|dequeued| Item::new(queue, dequeued)));
            }
            let next_at_nanos = inner.core.next_at_nanos();
            let (ticket, sleep_until_nanos) = inner.waiters.wait(context.waker(), next_at_nanos);
            self.ticket = Some(ticket);
            queue.shared.unlock(inner);
            let sleep = sleep_until_nanos.map(|at_nanos| match self.sleep.take() {
                Some(sleep) if sleep.0 == at_nanos => sleep,
                _ => (at_nanos, queue.sleep_until(at_nanos)),
            });
            self.sleep = sleep;
            match &mut self.sleep {
                Some((_, sleep)) => ready!(sleep.as_mut().poll(context)),
                None => return Poll::Pending,
            }
        }
    }
}

impl<K: Key> Drop for Get<'_, K> {
    /// Leaves the waiters. If this future had been woken for a key, another one is woken.
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut inner = self.queue.lock();
            let _unlisted = inner.waiters.leave(ticket);
            self.queue.shared.unlock(inner);
        }
    }
}

impl<K: Key> fmt::Debug for Get<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("is_waiting", &self.ticket.is_some()).finish_non_exhaustive()
    }
}
