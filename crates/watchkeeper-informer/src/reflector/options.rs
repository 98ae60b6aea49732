//! What can be chosen about a reflector.

use std::{ops::Range, time::Duration};

/// What can be chosen about a reflector. The defaults are client-go's where it has the choice.
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
pub struct ReflectorOptions {
    /// How many objects to ask for in a page. None leaves it to the rules: 500 where the server reads from its storage,
    /// everything at once where it answers from memory, because there the pages would bypass the memory.
    pub page_size: Option<u32>,
    /// Watches.
    pub watch: WatchOptions,
    /// Lists as streams.
    pub streaming: StreamingOptions,
    /// Waiting after failures.
    pub backoff: BackoffOptions,
    /// The times at which the server's history is verified.
    pub history_check: HistoryCheck,
    /// What to do about an object that cannot be decoded or transformed.
    pub undecodable: OnUndecodable,
    /// What the numbers in resourceVersions mean.
    pub versions: VersionOrder,
    /// How often to tell the sink to go over everything again; none, or zero, for never. Costs the server nothing.
    pub resync_period: Option<Duration>,
    /// Where the randomness of waits and timeouts comes from, for runs that can be repeated; none for a new seed.
    pub seed: Option<u64>,
}

/// Choices about watches.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchOptions {
    /// A watch is asked to end at a random time between once and twice this, so that watches that began together do not
    /// end together. 5 minutes; less counts as 5 minutes.
    pub min_timeout: Duration,
    /// How long after that time a watch that has not ended counts as dead. 30 seconds. (The HTTP source has a shorter one
    /// of its own; this is for any source.)
    pub grace: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { min_timeout: MIN_WATCH_TIMEOUT, grace: Duration::from_secs(30) }
    }
}

impl WatchOptions {
    /// The least and the most seconds a server is asked to keep a watch open.
    pub(crate) fn timeout_seconds(&self) -> Range<u64> {
        let least = self.min_timeout.clamp(MIN_WATCH_TIMEOUT, FOR_EVER).as_secs();
        least..least * 2
    }
}

/// The least a server is asked to keep a watch open.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_mins(5);

/// Longer than anything is waited for. Options may say longer; to compute with, this is enough.
pub(crate) const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// Options of streaming lists: a watch that begins with every object of the collection, costs a server less than a list,
/// and continues as the watch.
///
/// A server that rejects the request, or does not mark the end of the initial events, is remembered and gets paginated
/// lists instead. Streams that break say nothing about the server's abilities, and are tried again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamingOptions {
    /// Whether to request streaming lists. Defaults to true.
    pub is_enabled: bool,
    /// The number of streams in a row that may break before their initial events end, until one paginated list is tried
    /// instead. Defaults to 3.
    pub attempts: u32,
    /// The longest silence before the end of the initial events. Defaults to 10 s: a server that supports streaming lists
    /// marks the end as soon as it has sent the last object.
    pub silence: Duration,
    /// The longest time without a new object before the end of the initial events. Defaults to 60 s. The total time is
    /// not limited.
    pub progress: Duration,
    /// How long to remember that a server does not support streaming lists. Defaults to 30 min.
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

/// Options of the waits after failures.
///
/// Each class of failure (unreachable, denied, not served, overloaded, broken) has its own backoff, which starts over as
/// soon as a watch makes progress. Waits for an overloaded server double. Waits for a server that cannot be reached, or
/// rejects the request, are a sixteenth of the time since the first failure, so that a recovery is noticed soon after it
/// happened. Each wait is between half of its interval and all of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
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
/// A server whose storage was restored from a backup accepts a watch at a version of the lost history, and the cache
/// then stays wrong. A list of one object, the newest that is held, at exactly the version reached tells the two
/// histories apart. Without such evidence the collection is listed again; when the histories differ, the list begins a
/// new epoch ([`Replacement::is_new_epoch`](super::Replacement::is_new_epoch)).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoryCheck {
    /// Whether to verify before a watch is resumed. Defaults to true.
    pub on_reconnect: bool,
    /// How often to verify while a watch is open. Defaults to 10 min; `None` for never.
    pub every: Option<Duration>,
}

impl HistoryCheck {
    /// Returns when the next check is due: at least a second from `now`, however often checks are wanted.
    pub(crate) fn next(&self, now: Duration) -> Option<Duration> {
        self.every.map(|every| now.saturating_add(every.max(Duration::from_secs(1))))
    }
}

impl Default for HistoryCheck {
    fn default() -> Self {
        Self { on_reconnect: true, every: Some(Duration::from_mins(10)) }
    }
}

/// What to do about an object that cannot be decoded or transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnUndecodable {
    /// Report it, keep its last good version, go on with the others.
    #[default]
    Quarantine,
    /// Fail the list or the watch it came in, and try again.
    Fail,
}

/// What the numbers in resourceVersions mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum VersionOrder {
    /// Later is larger, across the whole collection, as with every server that keeps its objects in etcd. An event or a
    /// list with a smaller one is refused as a step back in time. Versions that are not numbers are not compared.
    #[default]
    Ordered,
    /// They are only names. For servers that number each object's versions apart.
    Opaque,
}
