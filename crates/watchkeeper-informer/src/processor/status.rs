//! How a listener is doing.

use std::time::Duration;

/// How one listener is doing, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerStatus {
    /// Events the handler was given, panics included.
    pub delivered: u64,
    /// Events that wait for the handler: those in the log, or the keys of a coalesced backlog. Up to a batch
    /// of those it is being given are counted too.
    pub pending: u64,
    /// For how long the oldest of the waiting events has waited; of a coalesced backlog, the oldest when it
    /// was coalesced. Zero when nothing waits.
    pub lag: Duration,
    /// True while the backlog is coalesced.
    pub is_coalescing: bool,
    /// How often it came to that.
    pub times_coalesced: u64,
    /// Events that were merged with another, or fell out with their opposite, so that the handler was not
    /// given them.
    pub events_coalesced: u64,
    /// Events at which the handler panicked.
    pub panics: u64,
    /// True once the handler has been given, and returned from, everything that was there at first.
    pub has_synced: bool,
}
