//! A key that has been handed out.

use std::{fmt, mem, time::Duration};

use crate::{
    Admission, Causes, Key, Priority, WorkQueue, Worker,
    core::{Popped, Token, Verdict},
    worker::Last,
};

/// A key that is yours to work on: nobody else gets it until this is finished or dropped.
///
/// Say how it went, or drop it:
///
/// | | the key | its failures |
/// |---|---|---|
/// | [`forget`](Item::forget) | leaves, unless it was added meanwhile | forgotten |
/// | [`retry`](Item::retry) | comes back after its backoff | one more |
/// | [`requeue_after`](Item::requeue_after) | comes back after a while | forgotten |
/// | [`put_back`](Item::put_back) | comes back after a while, or when it is added | kept |
/// | [`done`](Item::done), or dropping it | leaves, unless it was added meanwhile | kept while the key is in the queue |
/// | dropping it in a panic | comes back after its backoff, as with `retry` | one more |
///
/// A future that holds an item and is cancelled drops it: that is `done`. If half-finished work must be
/// repeated, call `retry` on that path.
///
/// An item borrows the queue's handle or the [`Worker`] it was taken from. Work that outlives those, such as a spawned
/// task, takes it [`into_owned`](Item::into_owned).
#[must_use = "dropping an item finishes it"]
pub struct Item<'q, K: Key> {
    /// There until it is finished.
    queue: Option<Handle<'q, K>>,
    popped: Popped<K>,
}

/// The queue of an item: borrowed, because counting another handle for every key is dear when many workers do it.
enum Handle<'q, K: Key> {
    Borrowed(&'q WorkQueue<K>),
    Owned(WorkQueue<K>),
    /// The worker's, which finishes the item with its next step.
    Worker(&'q mut Worker<K>),
}

impl<K: Key> Handle<'_, K> {
    #[inline]
    fn get(&self) -> &WorkQueue<K> {
        match self {
            Self::Borrowed(queue) => queue,
            Self::Owned(queue) => queue,
            Self::Worker(worker) => worker.queue(),
        }
    }
}

impl<'q, K: Key> Item<'q, K> {
    #[inline]
    pub(crate) fn new(queue: &'q WorkQueue<K>, popped: Popped<K>) -> Self {
        Self { queue: Some(Handle::Borrowed(queue)), popped }
    }

    #[inline]
    pub(crate) fn of_worker(worker: &'q mut Worker<K>, popped: Popped<K>) -> Self {
        Self { queue: Some(Handle::Worker(worker)), popped }
    }

    /// The same item with a handle of its own, free to go to another task.
    pub fn into_owned(mut self) -> Item<'static, K> {
        let queue = self.queue.take().map(|queue| Handle::Owned(queue.get().clone()));
        let Popped { key, causes, token, standing } = &mut self.popped;
        let popped =
            Popped { key: key.clone(), causes: mem::take(causes), token: *token, standing: *standing };
        Item { queue, popped }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.popped.key
    }

    /// Why it was added: every cause that was merged into this hand-out.
    pub fn causes(&self) -> &Causes {
        &self.popped.causes
    }

    /// How urgent it was.
    pub fn priority(&self) -> Priority {
        self.popped.standing.priority()
    }

    /// How often its work has failed since it last succeeded.
    pub fn failures(&self) -> u32 {
        self.popped.standing.failures()
    }

    /// Success: the key's failures are forgotten.
    pub fn forget(mut self) {
        self.leave(true);
    }

    /// Failure: the key comes back after the delay its rate limiter gives, with its priority and its causes.
    ///
    /// `Refused` when the queue is shut down.
    pub fn retry(mut self) -> Admission {
        self.retry_inner()
    }

    /// Success, and the key comes back after `delay`, with its priority.
    ///
    /// `Refused` when the queue is shut down.
    pub fn requeue_after(mut self, delay: Duration) -> Admission {
        self.finish(|queue, _| {
            let (at, now) = queue.time_after(delay);
            (Verdict::RequeueAt(at), Some(now))
        })
    }

    /// Not worked on, because its time has not come: the key comes back after `delay`, or as soon as it is added, as if
    /// it had not been handed out: with its priority, its causes and its failures.
    ///
    /// `Refused` when the queue is shut down.
    pub fn put_back(mut self, delay: Duration) -> Admission {
        self.finish(|queue, _| {
            let (at, now) = queue.time_after(delay);
            (Verdict::PutBack(at), Some(now))
        })
    }

    /// Finished, nothing more to say. The same as dropping it.
    pub fn done(self) {
        drop(self);
    }

    /// Takes the guard off: the key stays handed out until [`WorkQueue::done`] is called with the token.
    ///
    /// For work that is finished somewhere a guard cannot go. The token is plain data: using it twice, or after
    /// the key was handed out again, does nothing.
    #[must_use = "without its token the key is never finished"]
    pub fn into_token(mut self) -> ItemToken {
        // Dropping a guard that is finished does nothing.
        self.queue = None;
        ItemToken { token: self.popped.token }
    }

    fn retry_inner(&mut self) -> Admission {
        self.finish(WorkQueue::retry_verdict)
    }

    /// Ends an item of which nothing more is asked: at once, or with its worker's next step. Metrics are told how long the
    /// work took, so for them it is at once.
    #[inline]
    fn leave(&mut self, is_success: bool) {
        let last = Last { token: self.popped.token, is_success };
        match &mut self.queue {
            Some(Handle::Worker(worker)) if !worker.queue().has_metrics() => {
                worker.finish_later(last);
                self.queue = None;
            }
            _ => _ = self.finish(|_, _| (last.verdict(), None)),
        }
    }

    /// Finishes it at once, by a verdict and the time if that had to be asked.
    #[inline]
    fn finish(&mut self, verdict: impl FnOnce(&WorkQueue<K>, Token) -> (Verdict, Option<u64>)) -> Admission {
        let Some(handle) = self.queue.take() else { return Admission::Refused };
        let (queue, token) = (handle.get(), self.popped.token);
        let (verdict, now) = verdict(queue, token);
        let causes = mem::take(&mut self.popped.causes);
        queue.finish(token, verdict, causes, now).admission.unwrap_or(Admission::Refused)
    }
}

impl<K: Key> Drop for Item<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if self.queue.is_none() {
            return;
        }
        if std::thread::panicking() {
            self.retry_inner();
        } else {
            self.leave(false);
        }
    }
}

impl<K: fmt::Debug + Key> fmt::Debug for Item<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", self.key())
            .field("causes", self.causes())
            .field("priority", &self.priority())
            .field("failures", &self.failures())
            .finish_non_exhaustive()
    }
}

/// Permission to finish a key once, without a guard: [`Item::into_token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemToken {
    pub(crate) token: Token,
}
