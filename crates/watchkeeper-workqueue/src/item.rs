//! A dequeued key.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Duration,
};

use crate::{
    Admission, Causes, Key, Priority, WorkQueue,
    core::{Dequeued, Outcome},
};

/// A dequeued key, which no other worker receives until this value is finished or dropped.
///
/// | | the key | its failure count |
/// |---|---|---|
/// | [`forget`](Item::forget) | leaves the queue, unless it was added meanwhile | reset |
/// | [`retry`](Item::retry) | is queued again after its backoff | incremented |
/// | [`requeue_after`](Item::requeue_after) | is queued again after the delay | reset |
/// | [`put_back`](Item::put_back) | is queued again after the delay, or when it is added | kept |
/// | [`done`](Item::done), or dropping the item | leaves the queue, unless it was added meanwhile | kept while the key is in the queue |
/// | dropping the item in a panic | is queued again after its backoff, as with `retry` | incremented |
///
/// A cancelled future drops its item, which is `done`. If half-finished work must be repeated, call `retry` on that path.
///
/// An item is dropped in a panic if its thread unwinds and did not unwind when the key was dequeued, whatever the cause of the
/// panic. If the rate limiter panics as well, the item is `done`.
///
/// ```
/// use watchkeeper_workqueue::{Admission, WorkQueue};
///
/// let queue = WorkQueue::new("pods");
/// queue.add("default/web");
/// let item = queue.try_get().expect("the key is queued");
/// assert_eq!(item.retry(), Admission::BackingOff);
/// assert_eq!(queue.num_requeues(&"default/web"), 1);
/// ```
///
/// An item borrows its queue. A spawned task takes an item [`into_owned`](Item::into_owned).
#[derive(Debug)]
#[must_use = "dropping an item finishes its key"]
pub struct Item<'q, K: Key> {
    queue: Cow<'q, WorkQueue<K>>,
    /// `None` after the item was finished.
    dequeued: Option<Dequeued<K>>,
    /// True if the thread was unwinding when the key was dequeued: then an unwinding thread says nothing about the work.
    was_panicking: bool,
}

impl<'q, K: Key> Item<'q, K> {
    pub(crate) fn new(queue: &'q WorkQueue<K>, dequeued: Dequeued<K>) -> Self {
        Self { queue: Cow::Borrowed(queue), dequeued: Some(dequeued), was_panicking: thread::panicking() }
    }

    /// Converts the item into one that owns a handle of the queue and can be sent to another task.
    pub fn into_owned(mut self) -> Item<'static, K> {
        let queue = Cow::Owned(self.queue.as_ref().clone());
        Item { queue, dequeued: self.dequeued.take(), was_panicking: self.was_panicking }
    }

    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.dequeued().key
    }

    /// Returns the causes of all adds that were merged into this run.
    pub fn causes(&self) -> &Causes {
        &self.dequeued().causes
    }

    /// Returns the priority with which the key was dequeued.
    pub fn priority(&self) -> Priority {
        self.dequeued().priority
    }

    /// Returns the failures of the key since its last success, as of the dequeue.
    pub fn failures(&self) -> u32 {
        self.dequeued().failures
    }

    /// Finishes the key after a success and resets its failure count.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        self.finish(Outcome::Forget);
    }

    /// Finishes the key after a failure and queues it again after its backoff, with its priority and causes.
    ///
    /// Returns [`Admission::Refused`] if the queue is shut down.
    #[doc(alias = "AddRateLimited")]
    #[doc(alias = "handleErr")]
    pub fn retry(self) -> Admission {
        self.retry_with_delay().0
    }

    /// Finishes the key as [`retry`](Self::retry) does, and also returns the backoff, for logs.
    pub fn retry_with_delay(mut self) -> (Admission, Duration) {
        self.finish_failed()
    }

    /// Finishes the key after a success and queues it again after `delay`, with its priority.
    ///
    /// Returns [`Admission::Refused`] if the queue is shut down.
    #[doc(alias = "RequeueAfter")]
    pub fn requeue_after(mut self, delay: Duration) -> Admission {
        self.finish(Outcome::RequeueAt(self.queue.nanos_after(delay)))
    }

    /// Returns the key to the queue unprocessed. The key is dequeued again after `delay`, or when it is added, with its
    /// priority, causes and failure count.
    ///
    /// Returns [`Admission::Refused`] if the queue is shut down.
    pub fn put_back(mut self, delay: Duration) -> Admission {
        self.finish(Outcome::PutBackUntil(self.queue.nanos_after(delay)))
    }

    /// Finishes the key, as dropping the item does.
    #[doc(alias = "Done")]
    pub fn done(self) {
        drop(self);
    }

    /// The limiter may panic. The item then still contains its key, and is finished when it is dropped.
    fn finish_failed(&mut self) -> (Admission, Duration) {
        let (delay, until_nanos) = self.queue.backoff(self.key());
        (self.finish(Outcome::RetryAt(until_nanos)), delay)
    }

    fn finish(&mut self, outcome: Outcome) -> Admission {
        let finished = self.dequeued.take().and_then(|dequeued| self.queue.finish(dequeued, outcome));
        finished.unwrap_or(Admission::Refused)
    }

    /// Returns the dequeued key. Only methods that consume the item remove it.
    fn dequeued(&self) -> &Dequeued<K> {
        self.dequeued.as_ref().expect("an item contains its key until it is finished")
    }
}

impl<K: Key> Drop for Item<'_, K> {
    fn drop(&mut self) {
        let has_failed = self.dequeued.is_some() && thread::panicking() && !self.was_panicking;
        // A second panic during the unwinding would abort the process if it were not caught here.
        if !has_failed || catch_unwind(AssertUnwindSafe(|| self.finish_failed())).is_err() {
            self.finish(Outcome::Done);
        }
    }
}
