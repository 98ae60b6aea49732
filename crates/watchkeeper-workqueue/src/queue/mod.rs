//! The handle of a queue.

mod adding;
mod taking;

use std::{
    fmt,
    future::{Future, poll_fn},
    hash::{BuildHasher, Hash},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use foldhash::fast::RandomState;
use tokio::sync::{Notify, futures::Notified};

use crate::{
    Clock, QueueStats, WorkQueueBuilder,
    core::Core,
    limiter::RateLimiter,
    sync::{Mutex, MutexGuard},
};

/// A type that can be a key: small, cheap to clone, compared by value. `Arc<str>` is a good choice.
///
/// Implemented for every type that meets the bounds. `Eq` and `Clone` are called while the queue is locked, so they must
/// only compare and clone. `Drop` is called without the lock.
pub trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

/// A queue of keys for level-triggered work. The [crate documentation](crate) lists its guarantees.
///
/// A value is a handle: clones share one queue. The queue is dropped with its last handle and its last
/// [owned](crate::Item::into_owned) [`Item`](crate::Item).
///
/// ```
/// use watchkeeper_workqueue::{Admission, WorkQueue};
///
/// let queue = WorkQueue::new("pods");
/// assert_eq!(queue.add("default/web"), Admission::Queued);
/// assert_eq!(queue.add("default/web"), Admission::Merged);
/// let item = queue.try_get().expect("the key is queued");
/// assert_eq!(queue.add("default/web"), Admission::Deferred); // being processed: queued again when the item is finished
/// item.forget();
/// assert_eq!(queue.len(), 1);
/// ```
#[doc(alias = "TypedInterface")]
#[doc(alias = "TypedDelayingInterface")]
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "PriorityQueue")]
#[doc(alias = "RateLimitingInterface")]
#[doc(alias = "scheduler")]
pub struct WorkQueue<K: Key> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: Key> {
    name: Arc<str>,
    inner: Mutex<Inner<K>>,
    /// Code of the user, which runs without the lock of the queue.
    limiter: Box<dyn RateLimiter<K>>,
    /// Notifies one waiting `get` for queued keys or an earlier delay, and all of them when the queue is finished.
    changes: Notify,
    /// Notified when the queue is shut down and no key is queued or being processed, which is final.
    drained: Notify,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
}

/// The result of [`WorkQueue::drain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a drain that reached its deadline left keys unprocessed"]
pub enum Drained {
    /// All keys were processed: none is queued or being processed.
    Complete,
    /// The deadline passed first.
    DeadlineReached {
        /// The number of keys that are still queued.
        queued: usize,
        /// The number of keys that are still being processed.
        processing: usize,
    },
}

/// Everything under the lock of the queue.
struct Inner<K> {
    core: Core<K>,
    /// The time at which a waiting `get` wakes up for the earliest delay.
    timer_at_nanos: Option<u64>,
}

impl<K: Key> WorkQueue<K> {
    /// Creates a queue with the default rate limiter and clock. The name labels metrics and logs.
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::builder(name).build()
    }

    /// Returns a builder, for a rate limiter, clock or starvation limit other than the default.
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    pub fn builder(name: impl Into<Arc<str>>) -> WorkQueueBuilder<K> {
        WorkQueueBuilder::new(name.into())
    }

    pub(crate) fn from_builder(builder: WorkQueueBuilder<K>) -> Self {
        let WorkQueueBuilder { name, clock, limiter, starvation_limit } = builder;
        let inner = Mutex::new(Inner { core: Core::new(starvation_limit), timer_at_nanos: None });
        let (changes, drained, hasher) = (Notify::new(), Notify::new(), RandomState::default());
        Self { shared: Arc::new(Shared { name, inner, limiter, changes, drained, hasher, clock }) }
    }

    /// Returns the name of the queue.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Removes a key that waits for a delay or backoff. Returns whether the key waited.
    ///
    /// Has no effect on a key that is queued or being processed.
    pub fn cancel(&self, key: &K) -> bool {
        let hash = self.hash(key);
        let cancelled = self.shared.operate(|core, _| core.cancel(hash, key));
        cancelled.inspect(|key| self.shared.limiter.forget(key)).is_some()
    }

    /// Extends the delay or backoff of a waiting key to `delay` from now, unless it ends later. Returns whether the key waits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use watchkeeper_workqueue::WorkQueue;
    ///
    /// let queue = WorkQueue::new("pods");
    /// queue.add_after("default/web", Duration::from_secs(30));
    /// assert!(queue.postpone(&"default/web", Duration::from_secs(60)));
    /// assert!(queue.cancel(&"default/web"));
    /// assert!(!queue.postpone(&"default/web", Duration::from_secs(60)));
    /// ```
    pub fn postpone(&self, key: &K, delay: Duration) -> bool {
        let (hash, at_nanos) = (self.hash(key), self.nanos_after(delay));
        self.shared.operate(|core, _| core.postpone(hash, key, at_nanos))
    }

    /// Resets the failure count of a key, so that its next backoff is the shortest.
    #[doc(alias = "Forget")]
    pub fn forget(&self, key: &K) {
        let hash = self.hash(key);
        self.shared.operate(|core, _| core.forget(hash, key));
        self.shared.limiter.forget(key);
    }

    /// Returns the failures of a key since its last success. Zero for a key that is not in the queue.
    #[doc(alias = "NumRequeues")]
    pub fn num_requeues(&self, key: &K) -> u32 {
        let hash = self.hash(key);
        self.lock().core.failures(hash, key)
    }

    /// Returns the number of keys that are ready to be dequeued. Delayed keys and keys that are being processed do not count.
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.observe(|core, _| core.queued())
    }

    /// Returns whether no key is queued. Delayed keys and keys that are being processed do not count.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys that wait for a delay or backoff.
    pub fn waiting_len(&self) -> usize {
        self.shared.observe(|core, _| core.waiting())
    }

    /// Returns the number of keys being processed.
    pub fn processing_len(&self) -> usize {
        self.lock().core.processing()
    }

    /// Returns the counters and gauges of the queue at this moment, for metrics.
    pub fn stats(&self) -> QueueStats {
        self.shared.observe(Core::stats)
    }

    /// Refuses adds from now on, and ends every `get` after the last queued key was dequeued.
    ///
    /// Queued keys, and keys added again while they are processed, are still dequeued. Keys that wait for a delay or backoff are
    /// removed and returned. Retries and requeues are refused. Further calls have no effect.
    #[doc(alias = "ShutDown")]
    pub fn shutdown(&self) -> Vec<K> {
        let dropped = self.shared.operate(|core, _| core.shut_down());
        for key in &dropped {
            self.shared.limiter.forget(key);
        }
        dropped
    }

    /// Returns whether [`shutdown`](Self::shutdown) or [`drain`](Self::drain) was called.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shut_down(&self) -> bool {
        self.lock().core.is_shut_down
    }

    /// Shuts the queue down and waits until no key is queued or being processed, up to `deadline`.
    ///
    /// Workers have to keep taking keys meanwhile. Keys that wait for a delay or backoff are removed. Dropping the future leaves the
    /// queue shut down.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// use std::time::Duration;
    /// use watchkeeper_workqueue::{Drained, WorkQueue};
    ///
    /// let queue = WorkQueue::new("pods");
    /// queue.add("default/web");
    /// let left = queue.drain(Duration::from_secs(5)).await; // without a worker
    /// assert_eq!(left, Drained::DeadlineReached { queued: 1, processing: 0 });
    /// # });
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn drain(&self, deadline: Duration) -> Drained {
        let drained = self.shared.drained.notified();
        self.shutdown();
        self.wait(drained, Some(self.nanos_after(deadline))).await;
        let core = &self.lock().core;
        match (core.queued(), core.processing()) {
            (0, 0) => Drained::Complete,
            (queued, processing) => Drained::DeadlineReached { queued, processing },
        }
    }

    /// Waits until it is notified, or until a time.
    async fn wait(&self, notified: Notified<'_>, until_nanos: Option<u64>) {
        let mut notified = pin!(notified);
        let mut sleep = until_nanos.map(|at| self.shared.clock.sleep_until(Duration::from_nanos(at)));
        poll_fn(|context| {
            let is_over = sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready());
            if is_over { Poll::Ready(()) } else { notified.as_mut().poll(context) }
        })
        .await;
    }

    /// Returns a reference for the metrics, which does not keep the queue alive.
    #[cfg(feature = "prometheus")]
    pub(crate) fn downgrade(&self) -> std::sync::Weak<dyn Sample> {
        let shared: Arc<dyn Sample> = Arc::clone(&self.shared) as _;
        Arc::downgrade(&shared)
    }

    pub(crate) fn nanos_after(&self, delay: Duration) -> u64 {
        self.shared.now_nanos().saturating_add(nanos(delay))
    }

    /// Calculates the backoff of a key that failed now, and its end.
    pub(crate) fn backoff(&self, key: &K) -> (Duration, u64) {
        let (failures, now_nanos) = (self.num_requeues(key), self.shared.now_nanos());
        let delay = self.shared.limiter.delay(key, failures, Duration::from_nanos(now_nanos));
        (delay, now_nanos.saturating_add(nanos(delay)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.shared.inner.lock()
    }

    #[expect(clippy::cast_possible_truncation, reason = "entries store 32 bits of the hash")]
    fn hash(&self, key: &K) -> u32 {
        self.shared.hasher.hash_one(key) as u32
    }
}

impl<K: Key> Shared<K> {
    /// Runs one step of the state machine under the lock, then wakes the futures that can proceed.
    fn operate<R>(&self, step: impl FnOnce(&mut Core<K>, u64) -> R) -> R {
        let now_nanos = self.now_nanos();
        let mut inner = self.inner.lock();
        inner.core.promote(now_nanos);
        let result = step(&mut inner.core, now_nanos);
        self.unlock(inner);
        result
    }

    /// Unlocks the queue, then wakes the futures that can proceed. Every change ends here.
    ///
    /// While keys are queued, each change wakes a `get`, also that of a `get` which dequeues one of several keys. So as many
    /// are woken as there are keys.
    fn unlock(&self, inner: MutexGuard<'_, Inner<K>>) {
        let core = &inner.core;
        let needs_get = core.queued() > 0 || inner.needs_timekeeper();
        let (is_finished, is_drained) = (core.is_finished(), core.is_shut_down && core.is_idle());
        drop(inner);
        if needs_get {
            self.changes.notify_one();
        }
        if is_finished {
            self.changes.notify_waiters();
        }
        if is_drained {
            self.drained.notify_waiters();
        }
    }

    /// Makes all due keys ready, also if no worker is free to take them, and reads the state.
    fn observe<R>(&self, read: impl FnOnce(&Core<K>, u64) -> R) -> R {
        while self.operate(|core, now_nanos| core.has_due(now_nanos)) {}
        self.operate(|core, now_nanos| read(core, now_nanos))
    }

    fn now_nanos(&self) -> u64 {
        nanos(self.clock.now())
    }
}

/// A queue of any key type, as the metrics read it.
#[cfg(feature = "prometheus")]
pub(crate) trait Sample: Send + Sync {
    /// Returns the counters and gauges of the queue.
    fn stats(&self) -> QueueStats;
}

#[cfg(feature = "prometheus")]
impl<K: Key> Sample for Shared<K> {
    fn stats(&self) -> QueueStats {
        self.observe(Core::stats)
    }
}

impl<K: Key> Inner<K> {
    /// Returns whether a key is delayed and no future wakes up for it in time.
    fn needs_timekeeper(&self) -> bool {
        let next_at_nanos = self.core.next_at_nanos();
        next_at_nanos.is_some_and(|next| self.timer_at_nanos.is_none_or(|timer| next < timer))
    }
}

impl<K: Key> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Key> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, stats) = (self.name(), self.stats());
        f.debug_struct("WorkQueue").field("name", &name).field("stats", &stats).finish_non_exhaustive()
    }
}

/// Saturates after 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
