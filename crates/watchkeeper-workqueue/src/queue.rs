//! The queue as its users hold it.

use std::{
    fmt,
    hash::{BuildHasher, Hash},
    sync::{Arc, Weak},
    task::{Poll, Waker},
    time::Duration,
};

use foldhash::fast::RandomState;

use crate::{
    AddOptions, Admission, Causes, Drained, Get, Item, ItemToken, Metrics, Running, RunningWork,
    WorkQueueBuilder,
    clock::{Clock, Sleep},
    core::{Add, Core, Durations, Pending, Token, Verdict},
    get::Look,
    limiter::RateLimiter,
    options::When,
    sync::{Mutex, MutexGuard},
    waiters::{Ticket, Waiters, Wakes},
};

/// What can be a key: small, cheap to clone, compared by value. `Arc<str>` is a good one.
///
/// Implemented for everything that qualifies. `Hash` and `Eq` run while the queue is locked and must do nothing
/// but hash and compare; `Drop` never does.
pub trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

/// A queue of keys for level-triggered work. See the [crate's page](crate) for what it promises.
///
/// A handle: clones share one queue. It lives until the last handle and the last [`Item`] are gone.
pub struct WorkQueue<K: Key> {
    shared: Arc<Shared<K>>,
}

pub(crate) struct Shared<K: Key> {
    name: Arc<str>,
    state: Mutex<Inner<K>>,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
    limiter: Mutex<Box<dyn RateLimiter>>,
    metrics: Option<Arc<dyn Metrics>>,
}

/// Everything under the one lock.
struct Inner<K> {
    core: Core<K>,
    waiters: Waiters,
    drains: Vec<Waker>,
}

/// What finishing a token came to.
pub(crate) struct Ended {
    pub(crate) was_current: bool,
    pub(crate) admission: Option<Admission>,
}

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
        let core = Core::new(patience, metrics.is_some());
        let inner = Inner { core, waiters: Waiters::default(), drains: Vec::new() };
        let limiter = Mutex::new(limiter);
        let shared = Arc::new(Shared { name, state: Mutex::new(inner), hasher, clock, limiter, metrics });
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

    /// Adds a key, to be handed out as soon as a worker is free.
    ///
    /// A key that is in line already stays where it is; a scheduled copy is taken along; a key that is being
    /// processed is handed out again, once, when that ends; a key that backs off after a failure goes on
    /// backing off ([`AddOptions::immediately`] overrides that).
    #[inline]
    pub fn add(&self, key: K) -> Admission {
        self.insert(key, Pending::Now, AddOptions::new(), None)
    }

    /// Adds a key with a priority, a cause or a delay.
    pub fn add_with(&self, key: K, options: AddOptions) -> Admission {
        match options.when {
            When::Now => self.insert(key, Pending::Now, options, None),
            When::Immediately => self.insert(key, Pending::Immediate, options, None),
            When::After(delay) if delay.is_zero() => self.insert(key, Pending::Now, options, None),
            When::After(delay) => {
                let now = self.now();
                let admission = self.insert(
                    key,
                    Pending::Scheduled(now.saturating_add(nanos(delay))),
                    options,
                    Some(now),
                );
                self.count_retry(Some(admission));
                admission
            }
            When::RateLimited => {
                let hash = self.hash(&key);
                let failures = self.shared.state.lock().core.failures(hash, &key);
                let now = self.now();
                let at = now.saturating_add(self.limiter_delay(failures, now));
                let admission = self.insert(key, Pending::Backoff(at), options, Some(now));
                self.count_retry(Some(admission));
                admission
            }
        }
    }

    /// Adds a key that is to be handed out after `delay`, never earlier.
    ///
    /// Of several delays of one key the earliest counts. A delay of zero is an [`add`](Self::add).
    pub fn add_after(&self, key: K, delay: Duration) -> Admission {
        self.add_with(key, AddOptions::new().after(delay))
    }

    /// Adds a key whose work failed: it is handed out after the delay the rate limiter gives.
    ///
    /// A worker that holds the [`Item`] says [`Item::retry`] instead, which also keeps priority and causes.
    pub fn add_rate_limited(&self, key: K) -> Admission {
        self.add_with(key, AddOptions::new().rate_limited())
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
        let now = self.now();
        let at = now.saturating_add(nanos(delay));
        self.operate(Some(now), |core, _| core.postpone(hash, key, at))
    }

    /// Forgets the failures of a key, so that its next backoff starts from the beginning.
    pub fn forget(&self, key: &K) {
        let hash = self.hash(key);
        self.shared.state.lock().core.forget(hash, key);
    }

    /// Failures of a key since it last succeeded. Zero for a key that is not in the queue.
    pub fn num_requeues(&self, key: &K) -> u32 {
        let hash = self.hash(key);
        self.shared.state.lock().core.failures(hash, key)
    }

    /// Waits for a key and takes it. `None` once the queue is shut down and nothing is left to hand out.
    ///
    /// The future may be dropped at any time without losing a key. While it waits it must be polled or dropped,
    /// not set aside: it may be the one that has been woken for a key.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(self)
    }

    /// Takes a key if one can be handed out now.
    pub fn try_get(&self) -> Option<Item<K>> {
        let popped = self.operate(None, Core::pop)?;
        Some(Item::new(self.clone(), popped))
    }

    /// Finishes a key whose guard was taken off. False, and nothing happens, when that was done before.
    pub fn done(&self, token: ItemToken) -> bool {
        token.token.is_some_and(|token| self.finish(token, Verdict::Done, None).was_current)
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
        self.shared.state.lock().core.processing()
    }

    /// Stops taking adds, and ends every `get` once what is due has been taken.
    ///
    /// Keys in line, and keys added again while they are processed, are still handed out. Keys that wait for
    /// their time are dropped and returned; a worker that asks for a retry from now on is refused. Calling it again
    /// does nothing.
    pub fn shutdown(&self) -> Vec<K> {
        self.operate(None, |core, _| core.shut_down())
    }

    /// True once [`shutdown`](Self::shutdown) or [`drain`](Self::drain) was called.
    pub fn is_shut_down(&self) -> bool {
        self.shared.state.lock().core.is_shut_down()
    }

    /// Shuts down and waits until nothing is queued, dirty or being processed, but no longer than `deadline`.
    ///
    /// Somebody has to go on taking keys meanwhile. Dropping the future leaves the queue shut down.
    pub async fn drain(&self, deadline: Duration) -> Drained {
        self.shutdown();
        let mut sleep = self.sleep_until(self.time_after(deadline));
        std::future::poll_fn(|context| {
            {
                let mut inner = self.shared.state.lock();
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
            let core = &self.shared.state.lock().core;
            Poll::Ready(if core.is_idle() {
                Drained::Complete
            } else {
                Drained::DeadlineReached { queued: core.queued(), processing: core.processing() }
            })
        })
        .await
    }

    /// One look of a waiting `get`: a key, the end, or a place on the list of waiters.
    pub(crate) fn look(&self, ticket: Option<Ticket>, waker: &Waker) -> Look<K> {
        let mut inner = self.shared.state.lock();
        // The common case: there is a key, and nothing else to see to.
        if ticket.is_none()
            && inner.core.is_plain()
            && let Some(popped) = inner.core.pop(0)
        {
            drop(inner);
            return Look::Ready(Some(Item::new(self.clone(), popped)));
        }
        let now = self.now_if_needed(&inner.core);
        let promoted = inner.core.promote(now);
        let popped = inner.core.pop(now);
        let look = if popped.is_none() && !inner.core.is_finished() {
            let ticket = ticket.unwrap_or_else(|| inner.waiters.new_ticket());
            inner.waiters.wait(ticket, waker);
            let keep_time_until = inner.core.next_at().filter(|&at| inner.waiters.keep_time(ticket, at));
            Look::Wait { ticket, keep_time_until }
        } else {
            ticket.map(|ticket| inner.waiters.leave(ticket));
            Look::Ready(popped.map(|popped| Item::new(self.clone(), popped)))
        };
        let announced = promoted.min(inner.core.queued());
        self.release(inner, announced);
        look
    }

    /// Takes a `get` that was dropped off the list, and passes on what it was woken for.
    pub(crate) fn stop_waiting(&self, ticket: Ticket) {
        let mut inner = self.shared.state.lock();
        let was_woken = inner.waiters.leave(ticket);
        let announced = usize::from(was_woken).min(inner.core.queued());
        self.release(inner, announced);
    }

    pub(crate) fn finish(&self, token: Token, verdict: Verdict, causes: Option<Box<Causes>>) -> Ended {
        let now = matches!(verdict, Verdict::Retry(_) | Verdict::RequeueAt(_)).then(|| self.now());
        let finished = self.operate(now, |core, now| core.finish(token, verdict, causes, now));
        let Some(finished) = finished else {
            return Ended { was_current: false, admission: None };
        };
        if now.is_some() {
            self.count_retry(finished.admission);
        }
        // The queue's copy of a key that left, let go where nothing is locked.
        drop(finished.released);
        Ended { was_current: true, admission: finished.admission }
    }

    /// When a key handed out under `token` may come back if its work failed now.
    pub(crate) fn backoff_until(&self, token: Token) -> u64 {
        let failures = self.shared.state.lock().core.failures_of(token);
        let now = self.now();
        now.saturating_add(self.limiter_delay(failures, now))
    }

    pub(crate) fn time_after(&self, delay: Duration) -> u64 {
        self.now().saturating_add(nanos(delay))
    }

    pub(crate) fn sleep_until(&self, at: u64) -> Sleep {
        self.shared.clock.sleep_until(Duration::from_nanos(at))
    }

    #[inline]
    fn insert(&self, key: K, pending: Pending, options: AddOptions, now: Option<u64>) -> Admission {
        let hash = self.hash(&key);
        let is_failure = matches!(pending, Pending::Backoff(_));
        let AddOptions { priority, cause, when: _ } = options;
        let add = Add { pending, priority, cause, is_failure };
        // A key that is in the queue already comes back out here and is dropped after the lock is released.
        let mut key = Some(key);
        self.operate(now, |core, now| core.add(hash, &mut key, add, now))
    }

    /// Runs one step of the state machine under the lock, then does what must be done without it.
    #[inline]
    fn operate<R>(&self, now: Option<u64>, step: impl FnOnce(&mut Core<K>, u64) -> R) -> R {
        let mut inner = self.shared.state.lock();
        let queued_before = inner.core.queued();
        let result = if inner.core.is_plain() {
            step(&mut inner.core, now.unwrap_or(0))
        } else {
            let now = now.unwrap_or_else(|| self.now_if_needed(&inner.core));
            inner.core.promote(now);
            step(&mut inner.core, now)
        };
        if inner.waiters.is_empty() && inner.core.is_plain() {
            return result;
        }
        let announced = inner.core.queued().saturating_sub(queued_before);
        self.release(inner, announced);
        result
    }

    /// Releases the lock, having found out whom to wake and what to report, and does both.
    fn release(&self, mut inner: MutexGuard<'_, Inner<K>>, newly_queued: usize) {
        let to_wake = inner.settle(newly_queued);
        let report = self.shared.metrics.is_some().then(|| Report {
            added: inner.core.take_newly_due(),
            depth: inner.core.depth(),
            durations: inner.core.take_durations(),
        });
        drop(inner);
        to_wake.wake();
        if let Some((metrics, report)) = self.shared.metrics.as_ref().zip(report) {
            report.send(metrics.as_ref());
        }
    }

    #[inline]
    fn hash(&self, key: &K) -> u64 {
        self.shared.hasher.hash_one(key)
    }

    fn now(&self) -> u64 {
        nanos(self.shared.clock.now())
    }

    fn now_if_needed(&self, core: &Core<K>) -> u64 {
        if core.needs_time() { self.now() } else { 0 }
    }

    fn limiter_delay(&self, failures: u32, now: u64) -> u64 {
        nanos(self.shared.limiter.lock().delay(failures, Duration::from_nanos(now)))
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
        let inner = self.state.lock();
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
        let inner = self.shared.state.lock();
        f.debug_struct("WorkQueue")
            .field("name", &self.shared.name)
            .field("queued", &inner.core.queued())
            .field("waiting", &inner.core.waiting_count())
            .field("processing", &inner.core.processing())
            .field("is_shut_down", &inner.core.is_shut_down())
            .finish_non_exhaustive()
    }
}

/// Saturates after 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
