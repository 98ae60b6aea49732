//! A key that has been handed out.

use std::{fmt, mem, time::Duration};

use crate::{
    Admission, Causes, Key, Priority, WorkQueue,
    core::{Popped, Token, Verdict},
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
/// An item borrows the queue's handle it was taken from. Work that outlives that handle, such as a spawned task, takes
/// it [`into_owned`](Item::into_owned).
#[must_use = "dropping an item finishes it"]
pub struct Item<'q, K: Key> {
    queue: Handle<'q, K>,
    popped: Popped<K>,
    is_finished: bool,
}

/// The queue of an item: borrowed, because counting another handle for every key is dear when many workers do it.
enum Handle<'q, K: Key> {
    Borrowed(&'q WorkQueue<K>),
    Owned(WorkQueue<K>),
}

impl<K: Key> Handle<'_, K> {
    #[inline]
    fn get(&self) -> &WorkQueue<K> {
        match self {
            Self::Borrowed(queue) => queue,
            Self::Owned(queue) => queue,
        }
    }
}

impl<'q, K: Key> Item<'q, K> {
    #[inline]
    pub(crate) fn new(queue: &'q WorkQueue<K>, popped: Popped<K>) -> Self {
        Self { queue: Handle::Borrowed(queue), popped, is_finished: false }
    }

    /// The same item with a handle of its own, free to go to another task.
    pub fn into_owned(mut self) -> Item<'static, K> {
        let Popped { key, causes, token, failures, priority } = &mut self.popped;
        let popped = Popped {
            key: key.clone(),
            causes: causes.take(),
            token: *token,
            failures: *failures,
            priority: *priority,
        };
        let is_finished = mem::replace(&mut self.is_finished, true);
        Item { queue: Handle::Owned(self.queue.get().clone()), popped, is_finished }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.popped.key
    }

    /// Why it was added: every cause that was merged into this hand-out.
    pub fn causes(&self) -> &Causes {
        self.popped.causes.as_deref().unwrap_or(Causes::NONE)
    }

    /// How urgent it was.
    pub fn priority(&self) -> Priority {
        self.popped.priority
    }

    /// How often its work has failed since it last succeeded.
    pub fn failures(&self) -> u32 {
        u32::from(self.popped.failures)
    }

    /// Success: the key's failures are forgotten.
    pub fn forget(mut self) {
        self.finish(Verdict::Forget, None);
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
        let (at, now) = self.queue.get().time_after(delay);
        self.finish(Verdict::RequeueAt(at), Some(now)).unwrap_or(Admission::Refused)
    }

    /// Not worked on, because its time has not come: the key comes back after `delay`, or as soon as it is added, as if
    /// it had not been handed out: with its priority, its causes and its failures.
    ///
    /// `Refused` when the queue is shut down.
    pub fn put_back(mut self, delay: Duration) -> Admission {
        let (at, now) = self.queue.get().time_after(delay);
        self.finish(Verdict::PutBack(at), Some(now)).unwrap_or(Admission::Refused)
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
        self.is_finished = true;
        ItemToken { token: self.popped.token }
    }

    fn retry_inner(&mut self) -> Admission {
        let (verdict, now) = self.queue.get().retry_verdict(self.popped.token);
        self.finish(verdict, now).unwrap_or(Admission::Refused)
    }

    #[inline]
    fn finish(&mut self, verdict: Verdict, now: Option<u64>) -> Option<Admission> {
        self.is_finished = true;
        self.queue.get().finish(self.popped.token, verdict, self.popped.causes.take(), now).admission
    }
}

impl<K: Key> Drop for Item<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if std::thread::panicking() {
            self.retry_inner();
        } else {
            self.finish(Verdict::Done, None);
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
