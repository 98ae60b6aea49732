//! Waiting for a key.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{Item, Key, WorkQueue, clock::Sleep, queue::Look, waiters::Ticket};

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

impl<'a, K: Key> Future for Get<'a, K> {
    type Output = Option<Item<'a, K>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker whose queue is never empty must still let others run.
        let budget = ready!(tokio::task::coop::poll_proceed(context));
        if self.ticket.is_none()
            && let Some(item) = self.queue.take_plainly()
        {
            budget.made_progress();
            return Poll::Ready(Some(item));
        }
        let polled = self.as_mut().poll_closely(context);
        if polled.is_ready() {
            budget.made_progress();
        }
        polled
    }
}

impl<'a, K: Key> Get<'a, K> {
    fn poll_closely(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<'a, K>>> {
        loop {
            match self.queue.look(self.ticket, context.waker()) {
                Look::Ready(item) => {
                    self.ticket = None;
                    self.sleep = None;
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
