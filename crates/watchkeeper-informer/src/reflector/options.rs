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
    /// Looking for a server that went back in time.
    pub rewind_probe: RewindProbe,
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

/// Choices about lists as streams: a watch that begins with every object there is, costs a server less than a list, and
/// goes on as the watch.
///
/// Servers and proxies that do not know of it are found out and remembered, and get lists instead.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamingOptions {
    /// Whether to ask for it at all. Yes.
    pub is_enabled: bool,
    /// How many streams may break before their initial events end, in a row, before the server is taken not to be able to
    /// do it. 3.
    pub attempts: u32,
    /// How long a stream may be silent before the end of its initial events. 10 seconds: a server that can do it says at
    /// once when it is through.
    pub silence: Duration,
    /// How long the initial events may take altogether. 5 minutes.
    pub total: Duration,
    /// How long to remember that a server cannot do it. 30 minutes.
    pub remember: Duration,
}

impl Default for StreamingOptions {
    fn default() -> Self {
        Self {
            is_enabled: true,
            attempts: 3,
            silence: Duration::from_secs(10),
            total: Duration::from_mins(5),
            remember: Duration::from_mins(30),
        }
    }
}

/// Choices about waiting after failures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackoffOptions {
    /// The first interval. 800 milliseconds. Each wait is between once and twice its interval.
    pub initial: Duration,
    /// The longest interval. 30 seconds.
    pub max: Duration,
    /// How long things must go well before the next failure begins with the first interval again. 2 minutes.
    pub reset_after: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            reset_after: Duration::from_mins(2),
        }
    }
}

/// When to ask a server which version it is at.
///
/// A server whose storage was restored from a backup takes a watch from a version it has not reached yet, and says
/// nothing until it gets there. A list of one object, which costs next to nothing, tells.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RewindProbe {
    /// Whenever a watch is resumed. Yes.
    pub at_reconnect: bool,
    /// And this often while one is open. 10 minutes; none for never.
    pub every: Option<Duration>,
}

impl RewindProbe {
    /// When the next one is due. However often they are wanted, the server is left a second in between.
    pub(crate) fn next(&self, now: Duration) -> Option<Duration> {
        self.every.map(|every| now.saturating_add(every.max(Duration::from_secs(1))))
    }
}

impl Default for RewindProbe {
    fn default() -> Self {
        Self { at_reconnect: true, every: Some(Duration::from_mins(10)) }
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
