//! How an informer is doing: a status to wait on, and counters to read.

mod counters;
mod reporter;
mod wait;

use std::{sync::Arc, time::Instant};

use watchkeeper_client::classify::Reason;

pub(crate) use self::reporter::Reporter;
pub use self::{counters::CountersSnapshot, reporter::Monitor, wait::SyncError};

/// How the following of a collection is going.
///
/// What it says is about the connection to the server. A cache that has once been [`Status::Synced`] keeps what it holds
/// whatever the status becomes; `Stale` and the failures say how far to trust that it is up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nothing has been received yet.
    Connecting,
    /// The first list is being read.
    Listing {
        /// How many objects have been received.
        received: usize,
        /// How many there are, as far as the server says.
        about: Option<usize>,
    },
    /// The list has been read whole and handed on, and changes follow as they happen.
    Synced {
        /// Since when.
        since: Instant,
    },
    /// The list was read once, and the connection has been lost. What is held may be old; it is being tried again.
    Stale {
        /// Since when.
        since: Instant,
        /// Why.
        why: Reason,
    },
    /// It does not work.
    Failing {
        /// Why, as a label for metrics.
        why: Reason,
        /// Why, in words: what was tried, on what, and what to do.
        message: Arc<str>,
        /// Since when.
        since: Instant,
        /// How often in a row.
        attempts: u32,
        /// Whether it can be expected to pass by itself. If not, somebody has to mend it.
        will_pass: bool,
    },
    /// The server does not serve the resource. It may yet: a custom resource can be installed at any time, and is asked for
    /// now and then.
    Parked {
        /// What the server said.
        message: Arc<str>,
        /// Since when.
        since: Instant,
    },
    /// It is over.
    Stopped,
}

impl Status {
    /// Whether the list has been read whole and changes follow.
    pub fn is_synced(&self) -> bool {
        matches!(self, Self::Synced { .. })
    }

    /// A word for it, for metrics and logs. The set is closed and stable.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Listing { .. } => "listing",
            Self::Synced { .. } => "synced",
            Self::Stale { .. } => "stale",
            Self::Failing { .. } => "failing",
            Self::Parked { .. } => "parked",
            Self::Stopped => "stopped",
        }
    }
}
