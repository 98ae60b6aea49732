//! The builder of a queue.

use std::sync::Arc;

use crate::{Clock, Key, RateLimiter, TokioClock, WorkQueue, limiter::default_controller_limiter};

/// A builder of a [`WorkQueue`], returned by [`WorkQueue::builder`].
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::{WorkQueue, limiter::ItemExponential};
///
/// let backoff = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(300));
/// let queue = WorkQueue::builder("pods").rate_limiter(backoff).starvation_limit(8).build();
/// queue.add("default/web");
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
#[doc(alias = "TypedRateLimitingQueueConfig")]
pub struct WorkQueueBuilder<K: Key> {
    pub(crate) name: Arc<str>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limiter: Box<dyn RateLimiter<K>>,
    pub(crate) starvation_limit: u32,
}

/// With 16, work of low priority gets at least one dequeue in 17 while more urgent work is always present.
const DEFAULT_STARVATION_LIMIT: u32 = 16;

impl<K: Key> WorkQueueBuilder<K> {
    pub(crate) fn new(name: Arc<str>) -> Self {
        let (clock, limiter) = (Arc::new(TokioClock::new()), Box::new(default_controller_limiter()));
        Self { name, clock, limiter, starvation_limit: DEFAULT_STARVATION_LIMIT }
    }

    /// Sets the rate limiter. Defaults to [`default_controller_limiter`].
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<K>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Sets the clock of delays and metrics, for tests with virtual time. Defaults to [`TokioClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the number of dequeues of higher priority after which a queued key of lower priority is dequeued next, so that
    /// low priorities do not starve. Defaults to 16. Zero counts as 1.
    pub fn starvation_limit(mut self, dequeues: u32) -> Self {
        self.starvation_limit = dequeues;
        self
    }

    /// Creates the queue. Starts no task.
    pub fn build(self) -> WorkQueue<K> {
        WorkQueue::from_builder(self)
    }
}
