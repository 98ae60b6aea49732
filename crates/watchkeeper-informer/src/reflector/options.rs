//! Options of reflectors.

use std::{ops::Range, time::Duration};

/// The options of a reflector. The defaults are those of client-go where it has the same option.
///
/// ```
/// use watchkeeper_informer::reflector::ReflectorOptions;
///
/// let mut options = ReflectorOptions::default();
/// options.page_size = Some(100);
/// options.streaming.is_enabled = false;
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[doc(alias = "WatchListPageSize")]
#[doc(alias = "paginatedResult")]
pub struct ReflectorOptions {
    /// The number of objects in a page. With `None`, lists that the server reads from its storage have pages
    /// of 500, and lists from its watch cache have one page, because paging would bypass the cache. Defaults to
    /// `None`.
    pub page_size: Option<u32>,
    /// The options of watches.
    pub watch: WatchOptions,
    /// The options of streaming lists.
    pub streaming: StreamingOptions,
    /// The options of delays after failures.
    pub backoff: BackoffOptions,
    /// The options of the verification of the server's history.
    pub history_check: HistoryCheck,
    /// The handling of objects that cannot be decoded or transformed. Defaults to
    /// [`OnUndecodable::Quarantine`].
    pub undecodable: OnUndecodable,
    /// The meaning of resourceVersions. Defaults to [`VersionOrder::Ordered`].
    pub versions: VersionOrder,
    /// The interval of resyncs. `None` or zero is never. A resync sends no request to the server.
    pub resync_period: Option<Duration>,
    /// The seed of delays and timeouts, for reproducible runs. `None` is a random seed.
    pub seed: Option<u64>,
}

/// Options of watches.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "MinWatchTimeout")]
pub struct WatchOptions {
    /// The minimum timeout of a watch. The requested timeout is random between once and twice this, so that
    /// watches that started together do not end together. Defaults to 5 min, which is also the minimum.
    pub min_timeout: Duration,
    /// The time after the requested end at which a watch counts as dead. Defaults to 30 s. (The HTTP source
    /// has its own, shorter limit; this one applies to all sources.)
    pub grace: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { min_timeout: MIN_WATCH_TIMEOUT, grace: Duration::from_secs(30) }
    }
}

impl WatchOptions {
    /// Returns the range of the requested timeout in seconds.
    pub(crate) fn timeout_seconds(&self) -> Range<u64> {
        let least = self.min_timeout.clamp(MIN_WATCH_TIMEOUT, MAX_WAIT).as_secs();
        least..least * 2
    }
}

/// The minimum requested timeout of a watch.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_mins(5);

/// The maximum of all waits. Options may be longer; computations use this limit.
pub(crate) const MAX_WAIT: Duration = Duration::from_hours(24 * 365);

/// Options of streaming lists: a watch that begins with every object of the collection and continues as the watch. A
/// streaming list costs the server less than a paginated one.
///
/// A server that rejects the request, or does not mark the end of the initial events, is remembered and receives
/// paginated lists instead. Streams that break do not count as missing support, and are retried.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "initial_list_strategy")]
pub struct StreamingOptions {
    /// Whether to request streaming lists. Defaults to true.
    pub is_enabled: bool,
    /// The number of consecutive streams that may break before the end of their initial events, until one
    /// paginated list is tried instead. Defaults to 3.
    pub attempts: u32,
    /// The maximum silence before the end of the initial events. Defaults to 10 s: a server that supports
    /// streaming lists marks the end as soon as it has sent the last object.
    pub silence: Duration,
    /// The maximum time without a new object before the end of the initial events. Defaults to 60 s. The
    /// total time is not limited.
    pub progress: Duration,
    /// The time for which a server is remembered not to support streaming lists. Defaults to 30 min.
    pub remember: Duration,
}

impl Default for StreamingOptions {
    fn default() -> Self {
        Self {
            is_enabled: true,
            attempts: 3,
            silence: Duration::from_secs(10),
            progress: Duration::from_mins(1),
            remember: Duration::from_mins(30),
        }
    }
}

/// Options of the delays after failures.
///
/// Each class of failure (unreachable, denied, not served, overloaded, broken) has its own backoff, which is
/// reset as soon as a watch makes progress. Delays for an overloaded server double. Delays for a server that
/// is unreachable or rejects the request are a sixteenth of the time since the first failure, so that a
/// recovery is detected soon. Each delay is between half of its interval and all of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "MaxInternalErrorRetryDuration")]
#[doc(alias = "trigger_backoff")]
#[doc(alias = "DefaultBackoff")]
#[doc(alias = "backoffManager")]
#[doc(alias = "ExponentialBackoff")]
pub struct BackoffOptions {
    /// The shortest interval. Defaults to 800 ms.
    pub initial: Duration,
    /// The longest interval. Defaults to 30 s.
    pub max: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self { initial: Duration::from_millis(800), max: Duration::from_secs(30) }
    }
}

/// Options of the verification that the server's history is the one that was followed.
///
/// A server whose storage was restored from a backup accepts a watch at a version of the lost history, and
/// the cache then stays wrong. Listing one object, the newest cached one, at exactly the version reached
/// distinguishes the two histories. Without such evidence the collection is relisted. If the histories
/// differ, the list starts a new epoch ([`Replacement::is_new_epoch`](super::Replacement::is_new_epoch)).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoryCheck {
    /// Whether to verify before a watch is resumed. Defaults to true.
    pub on_reconnect: bool,
    /// The interval of verifications while a watch is open. Defaults to 10 min; `None` for never.
    pub every: Option<Duration>,
}

impl HistoryCheck {
    /// Returns the time of the next check, at least one second after `now`.
    pub(crate) fn next(&self, now: Duration) -> Option<Duration> {
        self.every.map(|every| now.saturating_add(every.max(Duration::from_secs(1))))
    }
}

impl Default for HistoryCheck {
    fn default() -> Self {
        Self { on_reconnect: true, every: Some(Duration::from_mins(10)) }
    }
}

/// The handling of objects that cannot be decoded or transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnUndecodable {
    /// Report the object, keep its last good version, and process the others.
    #[default]
    Quarantine,
    /// Fail the list or watch that contains the object, and retry.
    Fail,
}

/// The meaning of resourceVersions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum VersionOrder {
    /// Later versions are larger, across the whole collection, as on every server that stores its objects in
    /// etcd. An event or list with a smaller version is rejected as going back in time. Versions that are not
    /// numbers are not compared.
    #[default]
    Ordered,
    /// Versions are opaque. For servers that count the versions of each object separately.
    Opaque,
}
