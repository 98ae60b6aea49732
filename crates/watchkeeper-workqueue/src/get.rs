//! Waiting for a key.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{Item, Key, WorkQueue, clock::Sleep, waiters::Ticket};

/// The future of [`WorkQueue::get`].
#[must_use = "a future does nothing unless awaited"]
pub struct Get<'a, K: Key> {
    queue: &'a WorkQueue<K>,
    ticket: Option<Ticket>,
    /// The timer of this waiter while it is the one that watches the clock.
    sleep: Option<(u64, Sleep)>,
}

impl<'a, K: Key> Get<'a, K> {
    pub(crate) fn new(queue: &'a WorkQueue<K>) -> Self {
        Self { queue, ticket: None, sleep: None }
    }
}

/// What a look at the queue came to.
pub(crate) enum Look<K: Key> {
    /// A key, or `None` for ever after.
    Ready(Option<Item<K>>),
    /// Nothing yet; this waiter is on the list, and watches the clock until then if it says so.
    Wait { ticket: Ticket, keep_time_until: Option<u64> },
}

impl<K: Key> Future for Get<'_, K> {
    type Output = Option<Item<K>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker whose queue is never empty must still let others run.
        let budget = ready!(tokio::task::coop::poll_proceed(context));
        loop {
            match self.queue.look(self.ticket, context.waker()) {
                Look::Ready(item) => {
                    self.ticket = None;
                    self.sleep = None;
                    budget.made_progress();
                    return Poll::Ready(item);
                }
                Look::Wait { ticket, keep_time_until } => {
                    self.ticket = Some(ticket);
                    let Some(at) = keep_time_until else {
                        self.sleep = None;
                        return Poll::Pending;
                    };
                    let queue = self.queue;
                    let (_, sleep) = match &mut self.sleep {
                        Some(running) if running.0 == at => running,
                        other => other.insert((at, queue.sleep_until(at))),
                    };
                    ready!(sleep.as_mut().poll(context));
                    self.sleep = None;
                }
            }
        }
    }
}

impl<K: Key> Drop for Get<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.queue.stop_waiting(ticket);
        }
    }
}

impl<K: Key> fmt::Debug for Get<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("is_waiting", &self.ticket.is_some()).finish_non_exhaustive()
    }
}
