//! Status and counters of informers.

mod counters;
mod reporter;
mod wait;

use std::{sync::Arc, time::Instant};

use watchkeeper_client::classify::Reason;

pub(crate) use self::reporter::Reporter;
pub use self::{counters::ReflectorStats, reporter::Monitor, wait::SyncError};

/// The status of listing and watching a collection.
///
/// It describes the connection to the server. A cache that was once [`Status::Synced`] keeps its contents in
/// every status, but may be outdated in `Stale`, `Failing` and `Parked`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The server has not sent anything yet.
    Connecting,
    /// The initial list is being read.
    Listing {
        /// The number of objects received so far.
        received: usize,
        /// The estimated total number of objects, if the server reports one.
        estimated_total: Option<usize>,
    },
    /// The list is complete, and a watch follows the changes.
    Synced {
        /// The time of the transition to this status.
        since: Instant,
    },
    /// The connection was lost after a complete list and is being retried. The cache may be outdated.
    Stale {
        /// The time of the transition to this status.
        since: Instant,
        /// The cause, as a label for metrics.
        why: Reason,
    },
    /// Listing or watching fails.
    Failing {
        /// The cause, as a label for metrics.
        why: Reason,
        /// The cause as text: operation, object, cause and remedy.
        message: Arc<str>,
        /// The time of the transition to this status.
        since: Instant,
        /// The number of consecutive failures.
        attempts: u32,
        /// Whether the failure can be expected to pass without intervention.
        is_transient: bool,
    },
    /// The server does not serve the resource. A custom resource may be installed at any time, so the request
    /// is repeated periodically.
    Parked {
        /// The message of the server.
        message: Arc<str>,
        /// The time of the transition to this status.
        since: Instant,
    },
    /// The reflector was stopped. This status is final.
    Stopped,
}

impl Status {
    /// Returns whether the list is complete and a watch follows the changes.
    pub fn is_synced(&self) -> bool {
        matches!(self, Self::Synced { .. })
    }

    /// Returns a label for metrics and logs. The set of labels is fixed.
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
