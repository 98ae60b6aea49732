//! A queue with something other than the defaults.

use std::{fmt, marker::PhantomData, sync::Arc};

use crate::{Clock, Key, Metrics, RateLimiter, TokioClock, WorkQueue, limiter::default_controller_limiter};

/// Builds a [`WorkQueue`]: [`WorkQueue::builder`].
#[must_use = "a builder does nothing until `build`"]
pub struct WorkQueueBuilder<K: Key> {
    name: Arc<str>,
    clock: Option<Arc<dyn Clock>>,
    limiter: Option<Box<dyn RateLimiter>>,
    metrics: Option<Arc<dyn Metrics>>,
    patience: u32,
    key: PhantomData<fn() -> K>,
}

/// How often a lane may be left aside before it goes first. At 16, work of low priority gets at least one hand-out
/// in 17 while there is more urgent work all the time.
const DEFAULT_PATIENCE: u32 = 16;

impl<K: Key> WorkQueueBuilder<K> {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self { name, clock: None, limiter: None, metrics: None, patience: DEFAULT_PATIENCE, key: PhantomData }
    }

    /// Another rate limiter than [`default_controller_limiter`].
    pub fn rate_limiter(mut self, limiter: impl RateLimiter) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Another clock than [`TokioClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Where the queue reports what happens in it.
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// How many hand-outs may pass over a waiting priority before it is served regardless; at least 1, 16 unless set.
    pub fn patience(mut self, hand_outs: u32) -> Self {
        self.patience = hand_outs;
        self
    }

    /// The queue.
    pub fn build(self) -> WorkQueue<K> {
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let limiter = self.limiter.unwrap_or_else(|| Box::new(default_controller_limiter()));
        WorkQueue::from_parts(self.name, clock, limiter, self.metrics, self.patience)
    }
}

impl<K: Key> fmt::Debug for WorkQueueBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueueBuilder")
            .field("name", &self.name)
            .field("clock", &self.clock)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
