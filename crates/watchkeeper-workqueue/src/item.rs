//! A key that has been handed out.

use std::{fmt, time::Duration};

use crate::{
    Admission, Causes, Key, Priority, WorkQueue, Worker,
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
/// An item borrows the queue's handle or the [`Worker`] it was taken from. Work that outlives those, such as a spawned
/// task, takes it [`into_owned`](Item::into_owned).
#[must_use = "dropping an item finishes it"]
pub struct Item<'q, K: Key>(Held<'q, K>);

/// Where an item is: two words, so that handing it on moves nothing else.
enum Held<'q, K: Key> {
    /// With its worker, which finishes it with its next step.
    Worker(&'q mut Worker<K>),
    /// In a place of its own.
    Apart(Box<Apart<'q, K>>),
}

struct Apart<'q, K: Key> {
    queue: Handle<'q, K>,
    /// There until it is finished.
    popped: Option<Popped<K>>,
}

/// The queue of an item: borrowed, because counting another handle for every key is dear when many workers do it.
enum Handle<'q, K: Key> {
    Borrowed(&'q WorkQueue<K>),
    Owned(WorkQueue<K>),
}

impl<'q, K: Key> Item<'q, K> {
    pub(crate) fn new(queue: &'q WorkQueue<K>, popped: Popped<K>) -> Self {
        Self(Held::Apart(Box::new(Apart { queue: Handle::Borrowed(queue), popped: Some(popped) })))
    }

    /// The item a worker has taken.
    #[inline]
    pub(crate) fn of_worker(worker: &'q mut Worker<K>) -> Self {
        Self(Held::Worker(worker))
    }

    /// The same item with a handle of its own, free to go to another task.
    pub fn into_owned(mut self) -> Item<'static, K> {
        let queue = Handle::Owned(self.queue().clone());
        Item(Held::Apart(Box::new(Apart { queue, popped: self.place().take() })))
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.popped().key
    }

    /// Why it was added: every cause that was merged into this hand-out.
    pub fn causes(&self) -> &Causes {
        &self.popped().causes
    }

    /// How urgent it was.
    pub fn priority(&self) -> Priority {
        self.popped().standing.priority()
    }

    /// How often its work has failed since it last succeeded.
    pub fn failures(&self) -> u32 {
        self.popped().standing.failures()
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

    /// Reports a failure, as [`retry`](Self::retry) does, and also returns the delay that the rate limiter gives, for
    /// logs. An add with [`AddOptions::immediately`](crate::AddOptions::immediately) ends the delay.
    pub fn retry_with_delay(mut self) -> (Admission, Duration) {
        let failures = self.failures();
        let mut delay = Duration::ZERO;
        let admission = self.finish(|queue, token| {
            let (verdict, now) = queue.retry_verdict(token);
            delay = queue.retry_delay(verdict, now, failures);
            (verdict, now)
        });
        (admission, delay)
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
        let token = self.popped().token;
        // Nothing is left to be finished.
        *self.place() = None;
        ItemToken { token }
    }

    fn retry_inner(&mut self) -> Admission {
        self.finish(WorkQueue::retry_verdict)
    }

    /// Ends an item of which nothing more is asked: at once, or with its worker's next step. Metrics are told how long the
    /// work took, so for them it is at once.
    #[inline]
    fn leave(&mut self, is_success: bool) {
        match &mut self.0 {
            Held::Worker(worker) if !worker.queue().has_metrics() => worker.finish_later(is_success),
            _ => {
                let verdict = if is_success { Verdict::Forget } else { Verdict::Done };
                self.finish(|_, _| (verdict, None));
            }
        }
    }

    /// Finishes it at once, by a verdict and the time if that had to be asked.
    #[inline]
    fn finish(&mut self, verdict: impl FnOnce(&WorkQueue<K>, Token) -> (Verdict, Option<u64>)) -> Admission {
        // The key goes last: its `Drop` is somebody else's code.
        let Some(Popped { token, causes, key: _key, .. }) = self.place().take() else {
            return Admission::Refused;
        };
        let queue = self.queue();
        let (verdict, now) = verdict(queue, token);
        queue.finish(token, verdict, causes, now).admission.unwrap_or(Admission::Refused)
    }

    #[inline]
    fn queue(&self) -> &WorkQueue<K> {
        match &self.0 {
            Held::Worker(worker) => worker.queue(),
            Held::Apart(apart) => match &apart.queue {
                Handle::Borrowed(queue) => queue,
                Handle::Owned(queue) => queue,
            },
        }
    }

    #[inline]
    fn place(&mut self) -> &mut Option<Popped<K>> {
        match &mut self.0 {
            Held::Worker(worker) => worker.place(),
            Held::Apart(apart) => &mut apart.popped,
        }
    }

    /// What was handed out. Only calls that take the item finish it, so as long as there is somebody to ask there is this.
    #[inline]
    fn popped(&self) -> &Popped<K> {
        match &self.0 {
            Held::Worker(worker) => worker.current(),
            Held::Apart(apart) => apart.popped.as_ref(),
        }
        .expect("an item is there until it is finished")
    }
}

impl<K: Key> Drop for Item<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if self.place().is_none() {
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
