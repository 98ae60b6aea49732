//! A worker of a queue.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    Causes, Item, Key, WorkQueue,
    core::{Popped, Token, Verdict},
    get::Wait,
};

/// One who takes keys one after the other: [`WorkQueue::worker`].
///
/// Finishing a key and taking the next is one step for it, where [`WorkQueue::get`] and the end of an [`Item`] are two:
/// the queue is locked half as often, and several workers are less in each other's way. What is handed out stays with the
/// worker, where an item of `get` takes memory of its own. It is what a worker's loop should use:
///
/// ```
/// # use watchkeeper_workqueue::WorkQueue;
/// # async fn work(queue: WorkQueue<String>) {
/// let mut worker = queue.worker();
/// while let Some(item) = worker.next().await {
///     // ... look at item.key() ...
///     item.forget();
/// }
/// # }
/// ```
///
/// An item that ended with [`done`](Item::done) or [`forget`](Item::forget) is finished when the worker asks for
/// [the next](Self::next) or is dropped, whichever comes first. Until then the key counts as being processed: a worker that
/// does something long in between, or waits for the queue to [drain](WorkQueue::drain) there, asks
/// [to finish](Self::finish) first (and takes its items by `let ... else`: in a `while let` the worker is borrowed until the
/// end of the body). Everything else an item can say takes effect at once.
pub struct Worker<K: Key> {
    queue: WorkQueue<K>,
    /// What is still to be finished.
    last: Option<Last>,
    /// What was taken. It stays here while an [`Item`] stands for it: written once, and never moved.
    current: Option<Popped<K>>,
}

/// A key that is to be finished.
#[derive(Clone, Copy)]
pub(crate) struct Last {
    pub(crate) token: Token,
    /// Whether its failures are forgotten.
    pub(crate) is_success: bool,
}

impl Last {
    #[inline]
    pub(crate) fn verdict(self) -> Verdict {
        if self.is_success { Verdict::Forget } else { Verdict::Done }
    }
}

impl<K: Key> WorkQueue<K> {
    /// A worker, which takes keys one after the other.
    pub fn worker(&self) -> Worker<K> {
        self.count_worker(true);
        Worker { queue: self.clone(), last: None, current: None }
    }
}

impl<K: Key> Worker<K> {
    /// Finishes the key that was taken last, waits for one and takes it. `None` once the queue is shut down and nothing is
    /// left to hand out.
    ///
    /// The future may be dropped at any time without losing a key. While it waits it must be polled or dropped,
    /// not set aside: it may be the one that has been woken for a key.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an item borrows its worker, which no iterator's or stream's may"
    )]
    pub fn next(&mut self) -> Next<'_, K> {
        Next { worker: Some(self), wait: Wait::default() }
    }

    /// Finishes the key that was taken last, for a worker that does not ask for the next at once.
    pub fn finish(&mut self) {
        if let Some(last) = self.last.take() {
            self.queue.finish(last.token, last.verdict(), Causes::default(), None);
        }
    }

    /// The queue.
    pub fn queue(&self) -> &WorkQueue<K> {
        &self.queue
    }

    /// What the item that was taken last stands for.
    #[inline]
    pub(crate) fn current(&self) -> Option<&Popped<K>> {
        self.current.as_ref()
    }

    #[inline]
    pub(crate) fn place(&mut self) -> &mut Option<Popped<K>> {
        &mut self.current
    }

    /// Leaves the item that was taken last to be finished with the next step.
    #[inline]
    pub(crate) fn finish_later(&mut self, is_success: bool) {
        if let Some(popped) = &self.current {
            self.last = Some(Last { token: popped.token, is_success });
            self.current = None;
        }
    }
}

impl<K: Key> Drop for Worker<K> {
    fn drop(&mut self) {
        self.finish();
        self.queue.count_worker(false);
    }
}

impl<K: Key> fmt::Debug for Worker<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("queue", &self.queue.name()).finish_non_exhaustive()
    }
}

/// The future of [`Worker::next`].
#[must_use = "a future does nothing unless awaited"]
pub struct Next<'w, K: Key> {
    /// There until a key was taken, which then has it.
    worker: Option<&'w mut Worker<K>>,
    wait: Wait,
}

impl<'w, K: Key> Future for Next<'w, K> {
    type Output = Option<Item<'w, K>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker whose queue is never empty must still let others run.
        let budget = ready!(tokio::task::coop::poll_proceed(context));
        if !self.wait.has_begun()
            && let Some(worker) = self.worker.take()
        {
            // Left there by an item that was leaked: its key stays handed out.
            if worker.current.is_some() {
                worker.current = None;
            }
            if worker.queue.take_next(worker.last.take(), &mut worker.current) {
                budget.made_progress();
                return Poll::Ready(Some(Item::of_worker(worker)));
            }
            self.worker = Some(worker);
        }
        let polled = self.poll_closely(context);
        if polled.is_ready() {
            budget.made_progress();
        }
        polled
    }
}

impl<'w, K: Key> Next<'w, K> {
    /// Apart from the common case: what is in memory here is in registers there.
    #[inline(never)]
    fn poll_closely(&mut self, context: &mut Context<'_>) -> Poll<Option<Item<'w, K>>> {
        // Without one it was polled after its end, as no future should be.
        let Some(worker) = &mut self.worker else { return Poll::Ready(None) };
        worker.current = ready!(self.wait.poll(&worker.queue, context));
        Poll::Ready(self.worker.take().filter(|worker| worker.current.is_some()).map(Item::of_worker))
    }
}

impl<K: Key> Drop for Next<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            self.wait.end(&worker.queue);
        }
    }
}

impl<K: Key> fmt::Debug for Next<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("worker", &self.worker).finish_non_exhaustive()
    }
}
