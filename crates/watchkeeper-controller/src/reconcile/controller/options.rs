//! Options of a controller.

use std::{sync::Arc, time::Duration};

use watchkeeper_client::Client;
use watchkeeper_informer::{ObjectKey, Spawn};
use watchkeeper_workqueue::{Clock, RateLimiter, TokioClock, limiter::ItemExponential};

use crate::{
    HotLoop, HotLoopLimits, ReconcileError, metrics::ControllerMetrics, reconcile::context::Values,
    writes::TrackingOptions,
};

const FRESHNESS_TIMEOUT: Duration = Duration::from_secs(5);
const STOP_WITHIN: Duration = Duration::from_secs(30);

pub(super) type OnAbandon = Arc<dyn Fn(&AbandonedKey<'_>) + Send + Sync>;
pub(super) type OnHotLoop = Arc<dyn Fn(&HotLoop) + Send + Sync>;

/// A key that is not retried until an event or a resync enqueues it, as passed to the hook of
/// [`Controller::on_abandon`](crate::Controller::on_abandon).
#[derive(Debug)]
#[non_exhaustive]
pub struct AbandonedKey<'a> {
    /// The name of the controller.
    pub controller: &'a str,
    /// The key of the object.
    pub key: &'a ObjectKey,
    /// The number of attempts since the last success.
    pub attempts: u32,
    /// The outcome of the last attempt.
    pub reason: AbandonReason<'a>,
}

/// The outcome of the last attempt on an abandoned key.
#[derive(Debug)]
#[non_exhaustive]
pub enum AbandonReason<'a> {
    /// An error that is [terminal](crate::ErrorClass::Terminal), or that exhausted the retries.
    Error(&'a ReconcileError),
    /// A panic with this message.
    Panic(&'a str),
    /// A timeout after this time.
    Timeout(Duration),
}

pub(in crate::reconcile) struct ControllerOptions {
    pub(in crate::reconcile) name: Arc<str>,
    pub(in crate::reconcile) client: Option<Client>,
    pub(in crate::reconcile) values: Values,
    pub(in crate::reconcile) workers: usize,
    pub(in crate::reconcile) resync_period: Option<Duration>,
    pub(in crate::reconcile) timeout: Option<Duration>,
    pub(in crate::reconcile) retry_limit: Option<u32>,
    pub(in crate::reconcile) on_abandon: Option<OnAbandon>,
    pub(in crate::reconcile) stop_within: Duration,
    pub(in crate::reconcile) freshness_timeout: Option<Duration>,
    pub(in crate::reconcile) hot_loops: Option<HotLoopLimits>,
    pub(in crate::reconcile) on_hot_loop: Option<OnHotLoop>,
    pub(in crate::reconcile) metrics: Option<ControllerMetrics>,
    pub(in crate::reconcile) clock: Arc<dyn Clock>,
    pub(in crate::reconcile) spawn: Option<Arc<dyn Spawn>>,
    pub(in crate::reconcile) needs_leadership: bool,
}

impl ControllerOptions {
    pub(super) fn new(name: String, client: Option<Client>) -> Self {
        Self {
            name: name.into(),
            client,
            values: Values::new(),
            workers: 1,
            resync_period: None,
            timeout: None,
            retry_limit: None,
            on_abandon: None,
            stop_within: STOP_WITHIN,
            freshness_timeout: Some(FRESHNESS_TIMEOUT),
            hot_loops: Some(HotLoopLimits::default()),
            on_hot_loop: None,
            metrics: None,
            clock: Arc::new(TokioClock::new()),
            spawn: None,
            needs_leadership: true,
        }
    }

    pub(in crate::reconcile) fn tracking(&self) -> TrackingOptions {
        TrackingOptions { freshness_timeout: self.freshness_timeout, hot_loops: self.hot_loops }
    }
}

/// Returns the default rate limiter: an exponential backoff per key, from 5 ms to 1000 s. The overall rate
/// limit of client-go is omitted, because a failing key would delay the retries of others.
pub(super) fn default_limiter() -> Box<dyn RateLimiter<ObjectKey>> {
    Box::new(ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000)))
}
