//! The settings of a controller: workers, timeouts, retries, freshness, hot loops, metrics.

use std::{sync::Arc, time::Duration};

use watchkeeper_informer::{Object, ObjectKey, Spawn};
use watchkeeper_workqueue::{Clock, RateLimiter};

use super::{AbandonedKey, Controller};
use crate::{HotLoop, HotLoopLimits, metrics::ControllerMetrics};

/// Processing of keys.
impl<K: Object> Controller<K> {
    /// Sets the number of keys that are reconciled concurrently. Defaults to 1; 0 counts as 1.
    #[doc(alias = "MaxConcurrentReconciles")]
    #[doc(alias = "WithOptions")]
    #[doc(alias = "with_config")]
    #[doc(alias = "runWorker")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// Sets the timeout of a reconcile. On timeout the reconcile is dropped at its next `await`, and counts
    /// as a failure. Defaults to no timeout.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the number of retries of a failing key, after which the key is dropped until something changes.
    /// With 5 retries, a key is attempted six times. Defaults to no limit.
    pub fn retry_limit(mut self, retries: u32) -> Self {
        self.options.retry_limit = Some(retries);
        self
    }

    /// Calls `hook` when a key is abandoned, because its retries are exhausted or its error is terminal.
    pub fn on_abandon(mut self, hook: impl Fn(&AbandonedKey<'_>) + Send + Sync + 'static) -> Self {
        self.options.on_abandon = Some(Arc::new(hook));
        self
    }

    /// Sets the rate limiter of failed keys. Defaults to an exponential backoff per key, from 5 ms to 1000 s.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Sets the time that running reconciles have to finish after a stop request; the others are dropped.
    /// Defaults to 30 s.
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.options.stop_within = time;
        self
    }

    /// Sets the longest time that a key waits until the controller's caches show the last writes for it. Defaults to 5 s. After
    /// that time the reconcile begins with [`Freshness::TimedOut`](crate::Freshness::TimedOut), and the informer and the object
    /// are logged as a warning.
    ///
    /// Only the key waits; its worker processes other keys.
    ///
    /// # Objects that an informer does not select
    ///
    /// A write is not waited for when the namespaces or the label selector of the informer, or a field selector on `metadata.name`
    /// or `metadata.namespace`, exclude the object. A write that removes an object from the selection is waited for until the
    /// cache no longer has the object.
    ///
    /// Other field selectors, and sources that do not report their
    /// [selection](watchkeeper_client::list_watch::ListerWatcher::selection), leave it undecided. If the cache does not have the
    /// object after the timeout, the object is remembered and its writes are not waited for until the cache has the object. To
    /// avoid that first wait, write such objects through [`Context::untracked_client`](crate::Context::untracked_client).
    pub fn freshness_timeout(mut self, timeout: Duration) -> Self {
        self.options.freshness_timeout = Some(timeout);
        self
    }

    /// Disables the wait for own writes: reconciles begin even if the caches do not show earlier writes.
    pub fn without_freshness(mut self) -> Self {
        self.options.freshness_timeout = None;
        self
    }

    /// Sets the limits above which a key that triggers itself is reported. Defaults to [`HotLoopLimits::default`].
    pub fn hot_loops(mut self, limits: HotLoopLimits) -> Self {
        self.options.hot_loops = Some(limits);
        self
    }

    /// Disables the detection of keys that trigger themselves.
    pub fn without_hot_loops(mut self) -> Self {
        self.options.hot_loops = None;
        self
    }

    /// Calls `hook` for each key that triggers itself, in addition to the log and the metric.
    pub fn on_hot_loop(mut self, hook: impl Fn(&HotLoop) + Send + Sync + 'static) -> Self {
        self.options.on_hot_loop = Some(Arc::new(hook));
        self
    }

    /// Sets the metrics that the controller reports to. A controller that is added to a manager needs this
    /// only to report to a registry other than the manager's: [`Manager::add`](crate::manager::Manager::add)
    /// registers the metrics of every controller.
    ///
    /// The series are created by [`reconcile_with`](Self::reconcile_with) and removed when the controller is
    /// dropped. If another controller of the registry has the same name, the controller does not start and
    /// reports [`DuplicateName`](crate::metrics::DuplicateName).
    pub fn metrics(mut self, metrics: &ControllerMetrics) -> Self {
        self.options.metrics = Some(metrics.clone());
        self
    }

    /// Sets the clock. Defaults to tokio's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// Sets the spawner of worker tasks. Defaults to the current tokio runtime.
    pub fn spawn(mut self, spawn: impl Spawn) -> Self {
        self.options.spawn = Some(Arc::new(spawn));
        self
    }

    /// Runs the controller on every replica instead of only on the leader.
    #[doc(alias = "NeedLeaderElection")]
    pub fn on_every_replica(mut self) -> Self {
        self.options.needs_leadership = false;
        self
    }
}
