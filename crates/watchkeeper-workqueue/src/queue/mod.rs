//! The queue as its users hold it.

mod adding;
mod taking;

use std::{
    fmt,
    hash::{BuildHasher, Hash},
    sync::{Arc, Weak},
    task::{Poll, Waker},
    time::Duration,
};

use foldhash::fast::RandomState;

use crate::{
    Admission, Drained, Metrics, Running, RunningWork, WorkQueueBuilder,
    clock::{Clock, Sleep},
    core::{Add, Core, Durations, kept_hash},
    inbox::{Arrived, Inbox, OwnLine, Posted},
    limiter::RateLimiter,
    sync::{Mutex, MutexGuard, unlock_fairly},
    waiters::{Waiters, Wakes},
};

pub(crate) use self::taking::Look;

/// What can be a key: small, cheap to clone, compared by value. `Arc<str>` is a good one.
///
/// Implemented for everything that qualifies. `Eq` and `Clone` run while the queue is locked and must do nothing but
/// compare and clone; `Drop` never does.
pub trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

/// A queue of keys for level-triggered work. See the [crate's page](crate) for what it promises.
///
/// A handle: clones share one queue. It lives until the last handle is gone, and the last [`Item`](crate::Item) that
/// [owns](crate::Item::into_owned) one.
pub struct WorkQueue<K: Key> {
    shared: Arc<Shared<K>>,
}

pub(crate) struct Shared<K: Key> {
    name: Arc<str>,
    /// The core, under the one lock. What follows it is only read, so it has lines of its own.
    state: OwnLine<Mutex<Inner<K>>>,
    inbox: Inbox<K>,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
    backoff: BackoffSource,
    metrics: Option<Arc<dyn Metrics>>,
}

/// Where the delay of a failed key comes from.
enum BackoffSource {
    /// The core has the limiter's schedule. Without any delay in it, nobody needs to know when a key failed.
    Schedule { is_zero: bool, delays: Arc<[u64]> },
    /// The limiter is asked each time, without the queue's lock.
    Limiter(Mutex<Box<dyn RateLimiter>>),
}

/// Everything under the one lock.
struct Inner<K> {
    core: Core<K>,
    waiters: Waiters,
    drains: Vec<Waker>,
    arrived: Arrived<K>,
}

/// What taking in the inbox came to.
struct TakenIn<K> {
    /// The time, if it matters.
    now: u64,
    /// So many were taken in that others have waited long for the lock.
    many: bool,
    /// The adds whose keys were known, to be dropped where no lock is held.
    merged: Vec<Posted<K>>,
}

/// As many adds are taken in within a few microseconds.
const MANY: usize = 64;

/// What the metrics are told once the lock is released.
struct Report {
    added: u64,
    depth: usize,
    durations: Durations,
}

impl<K: Key> WorkQueue<K> {
    /// A queue with the defaults: client-go's rate limits, tokio's clock, no metrics. The name is for metrics
    /// and logs.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::builder(name).build()
    }

    /// A queue with something other than the defaults.
    pub fn builder(name: impl Into<Arc<str>>) -> WorkQueueBuilder<K> {
        WorkQueueBuilder::new(name.into())
    }

    pub(crate) fn from_parts(
        name: Arc<str>,
        clock: Arc<dyn Clock>,
        limiter: Box<dyn RateLimiter>,
        metrics: Option<Arc<dyn Metrics>>,
        patience: u32,
    ) -> Self {
        let hasher = RandomState::default();
        let schedule: Option<Arc<[u64]>> =
            limiter.schedule().map(|delays| delays.into_iter().map(nanos).collect());
        let schedule = schedule.filter(|delays| !delays.is_empty());
        let backoff = match schedule.clone() {
            None => BackoffSource::Limiter(Mutex::new(limiter)),
            Some(delays) => {
                BackoffSource::Schedule { is_zero: delays.iter().all(|&delay| delay == 0), delays }
            }
        };
        let core = Core::new(patience, metrics.is_some(), schedule.unwrap_or_default());
        let inner = Inner { core, waiters: Waiters::default(), drains: Vec::new(), arrived: Arrived::new() };
        let (state, inbox) = (OwnLine(Mutex::new(inner)), Inbox::new());
        let shared = Arc::new(Shared { name, state, inbox, hasher, clock, backoff, metrics });
        if let Some(metrics) = &shared.metrics {
            let queue: Weak<Shared<K>> = Arc::downgrade(&shared);
            metrics.attached(RunningWork { ask: Arc::new(move || Some(queue.upgrade()?.running())) });
        }
        Self { shared }
    }

    /// The name given when it was made.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Drops the waiting add of a key, scheduled or backing off. True if there was one.
    ///
    /// A key in line or being processed is not touched: what was to be looked at now is looked at.
    pub fn cancel(&self, key: &K) -> bool {
        let hash = self.hash(key);
        let cancelled = self.operate(None, |core, _| core.cancel(hash, key));
        cancelled.is_some()
    }

    /// Puts the waiting add of a key off until `delay` from now, if that is later than planned. True if there was one.
    pub fn postpone(&self, key: &K, delay: Duration) -> bool {
        let hash = self.hash(key);
        let (at, now) = self.time_after(delay);
        self.operate(Some(now), |core, _| core.postpone(hash, key, at))
    }

    /// Forgets the failures of a key, so that its next backoff starts from the beginning.
    pub fn forget(&self, key: &K) {
        let hash = self.hash(key);
        self.operate(None, |core, _| core.forget(hash, key));
    }

    /// Failures of a key since it last succeeded. Zero for a key that is not in the queue.
    pub fn num_requeues(&self, key: &K) -> u32 {
        let hash = self.hash(key);
        self.operate(None, |core, _| core.failures(hash, key))
    }

    /// Keys in line: those that could be handed out now.
    pub fn len(&self) -> usize {
        self.operate(None, |core, _| core.queued())
    }

    /// True when no key is in line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys that wait for their time, scheduled or backing off.
    pub fn waiting_len(&self) -> usize {
        self.operate(None, |core, _| core.waiting_count())
    }

    /// Keys that are handed out.
    pub fn processing_len(&self) -> usize {
        self.operate(None, |core, _| core.processing())
    }

    /// Stops taking adds, and ends every `get` once what is due has been taken.
    ///
    /// Keys in line, and keys added again while they are processed, are still handed out. Keys that wait for
    /// their time are dropped and returned; a worker that asks for a retry from now on is refused. Calling it again
    /// does nothing.
    pub fn shutdown(&self) -> Vec<K> {
        let inner = self.shared.state.0.lock();
        self.shared.inbox.close();
        self.operate_locked(inner, None, |core, _| core.shut_down())
    }

    /// True once [`shutdown`](Self::shutdown) or [`drain`](Self::drain) was called.
    pub fn is_shut_down(&self) -> bool {
        self.shared.state.0.lock().core.is_shut_down()
    }

    /// Shuts down and waits until nothing is queued, dirty or being processed, but no longer than `deadline`.
    ///
    /// Somebody has to go on taking keys meanwhile. Dropping the future leaves the queue shut down.
    pub async fn drain(&self, deadline: Duration) -> Drained {
        self.shutdown();
        let mut sleep = self.sleep_until(self.time_after(deadline).0);
        std::future::poll_fn(|context| {
            {
                let mut inner = self.shared.state.0.lock();
                if inner.core.is_idle() {
                    return Poll::Ready(Drained::Complete);
                }
                if !inner.drains.iter().any(|known| known.will_wake(context.waker())) {
                    inner.drains.push(context.waker().clone());
                }
            }
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let core = &self.shared.state.0.lock().core;
            Poll::Ready(if core.is_idle() {
                Drained::Complete
            } else {
                Drained::DeadlineReached { queued: core.queued(), processing: core.processing() }
            })
        })
        .await
    }

    /// The time after `delay`, and the time now.
    pub(crate) fn time_after(&self, delay: Duration) -> (u64, u64) {
        let now = self.now();
        (now.saturating_add(nanos(delay)), now)
    }

    pub(crate) fn sleep_until(&self, at: u64) -> Sleep {
        self.shared.clock.sleep_until(Duration::from_nanos(at))
    }

    /// Runs one step of the state machine under the lock, then does what must be done without it.
    #[inline]
    fn operate<R>(&self, now: Option<u64>, step: impl FnOnce(&mut Core<K>, u64) -> R) -> R {
        self.operate_locked(self.shared.state.0.lock(), now, step)
    }

    #[inline]
    fn operate_locked<'q, R>(
        &'q self,
        mut inner: MutexGuard<'q, Inner<K>>,
        now: Option<u64>,
        step: impl FnOnce(&mut Core<K>, u64) -> R,
    ) -> R {
        // The common case: nothing to take in, to promote, to wake or to report.
        if !self.shared.inbox.is_open() && inner.is_quiet() {
            let result = step(&mut inner.core, now.unwrap_or(0));
            self.release_plainly(inner);
            return result;
        }
        let queued_before = inner.core.queued();
        let TakenIn { now, many, merged } = self.take_in(&mut inner, now);
        inner.core.promote(now);
        let result = step(&mut inner.core, now);
        let newly_queued = inner.core.queued().saturating_sub(queued_before);
        self.release(inner, newly_queued, if many { unlock_fairly } else { drop });
        drop(merged);
        result
    }

    /// Adds what was posted to the inbox.
    fn take_in(&self, inner: &mut Inner<K>, now: Option<u64>) -> TakenIn<K> {
        let Inner { core, arrived, .. } = inner;
        if self.shared.inbox.is_open() && arrived.rest().is_empty() {
            self.shared.inbox.take(arrived, core.has_long_line());
            core.fetch(arrived.rest().iter().map(|posted| posted.hash));
        }
        let needs_time = || {
            let is_timed = |posted: &Posted<K>| core.needs_time_for(posted.wish);
            core.needs_time() || (arrived.has_timed && arrived.rest().iter().any(is_timed))
        };
        let now = now.unwrap_or_else(|| if needs_time() { self.now() } else { 0 });
        let many = arrived.rest().len() >= MANY;
        while let Some((Posted { key, hash, wish, .. }, cause)) = arrived.next() {
            if *wish == Add::PLAIN.wish && cause.is_none() && core.is_plain() {
                core.add_plain(*hash, key);
            } else {
                core.add(*hash, key, Add { wish: *wish, cause, ..Add::PLAIN }, now);
            }
        }
        TakenIn { now, many, merged: arrived.finish() }
    }

    /// Releases the lock after a step of a queue that was quiet.
    #[inline]
    fn release_plainly<'q>(&'q self, inner: MutexGuard<'q, Inner<K>>) {
        if !inner.core.is_plain() {
            self.release(inner, 0, drop);
        }
    }

    /// Releases the lock by `unlock`, having found out whom to wake and what to report, and does both.
    fn release<'q>(
        &'q self,
        mut inner: MutexGuard<'q, Inner<K>>,
        newly_queued: usize,
        unlock: fn(MutexGuard<'q, Inner<K>>),
    ) {
        let to_wake = inner.settle(newly_queued);
        self.shared.inbox.set_has_waiters(!inner.waiters.is_empty());
        self.shared.inbox.set_has_delays(inner.core.waiting_count() > 0);
        let report = self.shared.metrics.is_some().then(|| Report {
            added: inner.core.take_newly_due(),
            depth: inner.core.depth(),
            durations: inner.core.take_durations(),
        });
        unlock(inner);
        to_wake.wake();
        if let Some((metrics, report)) = self.shared.metrics.as_ref().zip(report) {
            report.send(metrics.as_ref());
        }
    }

    #[inline]
    pub(crate) fn has_metrics(&self) -> bool {
        self.shared.metrics.is_some()
    }

    #[inline]
    fn hash(&self, key: &K) -> u32 {
        kept_hash(self.shared.hasher.hash_one(key))
    }

    fn now(&self) -> u64 {
        nanos(self.shared.clock.now())
    }

    fn count_retry(&self, admission: Option<Admission>) {
        if let Some(metrics) = &self.shared.metrics
            && admission.is_some_and(|admission| admission != Admission::Refused)
        {
            metrics.retried();
        }
    }
}

impl Report {
    fn send(self, metrics: &dyn Metrics) {
        if self.added > 0 {
            metrics.added(self.added);
        }
        metrics.depth(self.depth);
        if let Some(waited) = self.durations.queued_nanos {
            metrics.queue_duration(Duration::from_nanos(waited));
        }
        if let Some(took) = self.durations.work_nanos {
            metrics.work_duration(Duration::from_nanos(took));
        }
    }
}

impl<K: Key> Inner<K> {
    /// True when a step needs nothing done before it, and nothing after it but what it brings about itself.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.core.is_plain() && self.waiters.is_empty()
    }

    /// After a step: whoever has to act on what changed.
    fn settle(&mut self, newly_queued: usize) -> Wakes {
        let mut to_wake = Wakes::default();
        self.waiters.take(newly_queued, &mut to_wake);
        if self.core.is_finished() {
            self.waiters.take_all(&mut to_wake);
        } else {
            self.waiters.ensure_keeper(self.core.next_at(), &mut to_wake);
        }
        if self.core.is_shut_down() && self.core.is_idle() {
            to_wake.extend(self.drains.drain(..));
        }
        to_wake
    }
}

impl<K: Key> Shared<K> {
    fn running(&self) -> Running {
        let now = nanos(self.clock.now());
        let inner = self.state.0.lock();
        let sum = inner.core.running(now);
        Running {
            keys: inner.core.processing(),
            unfinished: Duration::from_nanos(sum.total),
            longest: Duration::from_nanos(sum.longest),
        }
    }
}

impl<K: Key> Drop for Shared<K> {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.detached();
        }
    }
}

impl<K: Key> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Key> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queued, waiting, processing) =
            self.operate(None, |core, _| (core.queued(), core.waiting_count(), core.processing()));
        f.debug_struct("WorkQueue")
            .field("name", &self.shared.name)
            .field("queued", &queued)
            .field("waiting", &waiting)
            .field("processing", &processing)
            .field("is_shut_down", &self.is_shut_down())
            .finish_non_exhaustive()
    }
}

/// Saturates after 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
