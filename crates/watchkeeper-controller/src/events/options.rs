//! Limits and intervals of event recording.

use std::time::Duration;

/// The limits and intervals of event recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "CorrelatorOptions")]
pub struct EventOptions {
    /// The number of recorded events that can wait to be processed. Defaults to 1,000.
    pub queue: usize,
    /// The number of series that are kept in memory. Defaults to 4,096.
    pub series: usize,
    /// The number of events that a controller may start about one object without waiting. Defaults to 25.
    pub burst: u32,
    /// The interval after which a controller may start one more event about an object. Defaults to five minutes.
    pub refill_interval: Duration,
    /// The interval between two writes of a series that continues. Defaults to one minute.
    pub refresh_interval: Duration,
    /// The time without occurrences after which a series ends. The next occurrence is a new event. Defaults to six minutes.
    pub series_ends_after: Duration,
    /// The maximum number of attempts to write an event. Defaults to 12.
    pub attempts: u32,
    /// The delay between two attempts. Defaults to ten seconds.
    pub retry_interval: Duration,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self {
            queue: 1_000,
            series: 4_096,
            burst: 25,
            refill_interval: Duration::from_mins(5),
            refresh_interval: Duration::from_mins(1),
            series_ends_after: Duration::from_mins(6),
            attempts: 12,
            retry_interval: Duration::from_secs(10),
        }
    }
}
