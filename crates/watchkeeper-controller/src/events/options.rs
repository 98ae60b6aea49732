//! How many events, how often.

use std::time::Duration;

/// How many events, how often.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventOptions {
    /// Events that wait to be taken in. 1,000.
    pub queue: usize,
    /// Series that are remembered at a time. 4,096.
    pub series: usize,
    /// Events a source may start about one object at once. 25.
    pub burst: u32,
    /// After that, one more each time this has passed. Five minutes.
    pub refill_interval: Duration,
    /// How often a series that goes on is written. A minute.
    pub refresh_interval: Duration,
    /// A series that nothing was added to for so long is over; the same thing after that is a new event. Six minutes.
    pub series_ends_after: Duration,
    /// How often an event is tried to be written. 12 times.
    pub attempts: u32,
    /// How long between two tries. Ten seconds.
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
