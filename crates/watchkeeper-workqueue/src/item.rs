//! A key that has been handed out.

use std::{fmt, time::Duration};

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
/// | [`done`](Item::done), or dropping it | leaves, unless it was added meanwhile | kept while the key is in the queue |
/// | dropping it in a panic | comes back after its backoff, as with `retry` | one more |
///
/// A future that holds an item and is cancelled drops it: that is `done`. If half-finished work must be
/// repeated, call `retry` on that path.
#[must_use = "dropping an item finishes it"]
pub struct Item<K: Key> {
    queue: WorkQueue<K>,
    key: K,
    token: Option<Token>,
    causes: Option<Box<Causes>>,
    priority: Priority,
    failures: u32,
}

impl<K: Key> Item<K> {
    pub(crate) fn new(queue: WorkQueue<K>, popped: Popped<K>) -> Self {
        let Popped { key, token, causes, priority, failures } = popped;
        Self { queue, key, token: Some(token), causes, priority, failures }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Why it was added: every cause that was merged into this hand-out.
    pub fn causes(&self) -> &Causes {
        self.causes.as_deref().unwrap_or(Causes::NONE)
    }

    /// How urgent it was.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How often its work has failed since it last succeeded.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Success: the key's failures are forgotten.
    pub fn forget(mut self) {
        self.finish(Verdict::Forget);
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
        let at = self.queue.time_after(delay);
        self.finish(Verdict::RequeueAt(at)).unwrap_or(Admission::Refused)
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
        // Dropping a guard without a token does nothing.
        ItemToken { token: self.token.take() }
    }

    fn retry_inner(&mut self) -> Admission {
        let Some(token) = self.token else {
            return Admission::Refused;
        };
        let at = self.queue.backoff_until(token);
        self.finish(Verdict::Retry(at)).unwrap_or(Admission::Refused)
    }

    fn finish(&mut self, verdict: Verdict) -> Option<Admission> {
        let token = self.token.take()?;
        let causes = self.causes.take();
        self.queue.finish(token, verdict, causes).admission
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        if self.token.is_none() {
            return;
        }
        if std::thread::panicking() {
            self.retry_inner();
        } else {
            self.finish(Verdict::Done);
        }
    }
}

impl<K: fmt::Debug + Key> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("causes", self.causes())
            .field("priority", &self.priority)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// Permission to finish a key once, without a guard: [`Item::into_token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemToken {
    pub(crate) token: Option<Token>,
}
