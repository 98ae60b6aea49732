//! Waiting for a key.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{Item, Key, WorkQueue, clock::Sleep, core::Popped, queue::Look, waiters::Ticket};

/// The future of [`WorkQueue::get`].
#[must_use = "a future does nothing unless awaited"]
pub struct Get<'a, K: Key> {
    queue: &'a WorkQueue<K>,
    wait: Wait,
}

impl<'a, K: Key> Get<'a, K> {
    pub(crate) fn new(queue: &'a WorkQueue<K>) -> Self {
        Self { queue, wait: Wait::default() }
    }
}

impl<'a, K: Key> Future for Get<'a, K> {
    type Output = Option<Item<'a, K>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker whose queue is never empty must still let others run.
        let budget = ready!(tokio::task::coop::poll_proceed(context));
        if !self.wait.has_begun() {
            let mut popped = None;
            self.queue.take_next(None, &mut popped);
            if let Some(popped) = popped {
                budget.made_progress();
                return Poll::Ready(Some(Item::new(self.queue, popped)));
            }
        }
        let polled = self.poll_closely(context);
        if polled.is_ready() {
            budget.made_progress();
        }
        polled
    }
}

impl<'a, K: Key> Get<'a, K> {
    /// Apart from the common case: what is in memory here is in registers there.
    #[inline(never)]
    fn poll_closely(&mut self, context: &mut Context<'_>) -> Poll<Option<Item<'a, K>>> {
        let popped = ready!(self.wait.poll(self.queue, context));
        Poll::Ready(popped.map(|popped| Item::new(self.queue, popped)))
    }
}

impl<K: Key> Drop for Get<'_, K> {
    #[inline]
    fn drop(&mut self) {
        self.wait.end(self.queue);
    }
}

impl<K: Key> fmt::Debug for Get<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("is_waiting", &self.wait.has_begun()).finish_non_exhaustive()
    }
}

/// A place on the list of those who wait for a key, once there is need of one.
#[derive(Default)]
pub(crate) struct Wait {
    ticket: Option<Ticket>,
    /// The timer of this waiter while it is the one that watches the clock.
    sleep: Option<(u64, Sleep)>,
}

impl Wait {
    /// Whether there is a place.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.ticket.is_some()
    }

    /// A key, as soon as there is one.
    pub(crate) fn poll<K: Key>(
        &mut self,
        queue: &WorkQueue<K>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Popped<K>>> {
        loop {
            match queue.look(self.ticket, context.waker()) {
                Look::Ready(popped) => {
                    self.ticket = None;
                    self.sleep = None;
                    return Poll::Ready(popped);
                }
                Look::Wait { ticket, keep_time_until } => {
                    self.ticket = Some(ticket);
                    let Some(at) = keep_time_until else {
                        self.sleep = None;
                        return Poll::Pending;
                    };
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

    /// Gives the place up, if there is one.
    #[inline]
    pub(crate) fn end<K: Key>(&mut self, queue: &WorkQueue<K>) {
        if let Some(ticket) = self.ticket.take() {
            queue.stop_waiting(ticket);
        }
    }
}
