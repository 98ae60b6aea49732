//! Options of a controller.

use std::{sync::Arc, time::Duration};

use watchkeeper_client::Client;
use watchkeeper_informer::{ObjectKey, Spawn};
use watchkeeper_workqueue::{Clock, RateLimiter, TokioClock, limiter::ItemExponential};

use crate::{
    HotLoop, HotLoopLimits, ReconcileError, context::Values, memory::MemoryOptions,
    metrics::ControllerMetrics,
};

const FRESHNESS_TIMEOUT: Duration = Duration::from_secs(5);
const STOP_WITHIN: Duration = Duration::from_secs(30);

pub(super) type OnGiveUp = Arc<dyn Fn(&GaveUp<'_>) + Send + Sync>;
pub(super) type OnHotLoop = Arc<dyn Fn(&HotLoop) + Send + Sync>;

/// A key that is not retried until something changes.
#[derive(Debug)]
#[non_exhaustive]
pub struct GaveUp<'a> {
    /// The name of the controller.
    pub controller: &'a str,
    /// The key of the object.
    pub key: &'a ObjectKey,
    /// The number of attempts since the last success.
    pub tries: u32,
    /// The outcome of the last attempt.
    pub reason: GiveUpReason<'a>,
}

/// The outcome of the last attempt on a key that was given up.
#[derive(Debug)]
#[non_exhaustive]
pub enum GiveUpReason<'a> {
    /// An error that is [terminal](crate::ErrorClass::Terminal), or that exhausted the retries.
    Error(&'a ReconcileError),
    /// A panic with this message.
    Panic(&'a str),
    /// A timeout after this time.
    Timeout(Duration),
}

pub(super) struct Options {
    pub(super) name: Arc<str>,
    pub(super) client: Option<Client>,
    pub(super) values: Values,
    pub(super) workers: usize,
    pub(super) resync_period: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) retry_limit: Option<u32>,
    pub(super) on_give_up: Option<OnGiveUp>,
    pub(super) stop_within: Duration,
    pub(super) freshness_timeout: Option<Duration>,
    pub(super) hot_loops: Option<HotLoopLimits>,
    pub(super) on_hot_loop: Option<OnHotLoop>,
    pub(super) metrics: Option<ControllerMetrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) spawn: Option<Arc<dyn Spawn>>,
    pub(super) needs_leadership: bool,
}

impl Options {
    pub(super) fn new(name: String, client: Option<Client>) -> Self {
        Self {
            name: name.into(),
            client,
            values: Values::new(),
            workers: 1,
            resync_period: None,
            timeout: None,
            retry_limit: None,
            on_give_up: None,
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

    pub(super) fn memory(&self) -> MemoryOptions {
        MemoryOptions { freshness_timeout: self.freshness_timeout, hot_loops: self.hot_loops }
    }
}

/// Returns the default rate limiter: an exponential backoff per key, from 5 ms to 1000 s. The overall rate
/// limit of client-go is omitted, because a failing key would delay the retries of others.
pub(super) fn default_limiter() -> Box<dyn RateLimiter<ObjectKey>> {
    Box::new(ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000)))
}
