//! Time limits of lists and watches.

use std::time::Duration;

/// Time limits of lists and watches. Exceeding one is an [`Error::Deadline`](crate::Error::Deadline).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From sending a request to receiving the response head. Defaults to 65 s: API servers time out after 60 s and
    /// then report why.
    pub head: Duration,
    /// The longest a list may go without progress, that is, without a complete object or its end. Defaults to 60 s. The
    /// total time of a list is not limited, since a large list over a slow connection takes as long as it takes.
    pub list_progress: Duration,
    /// The least a server is asked to keep a watch open; the time is chosen at random between once and twice this,
    /// so that watches opened together do not end together. 5 minutes, as in client-go.
    pub watch: Duration,
    /// How long after that time the server may still take to end the watch, before the connection counts as dead.
    /// 5 seconds.
    pub watch_grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(65),
            list_progress: Duration::from_mins(1),
            watch: Duration::from_mins(5),
            watch_grace: Duration::from_secs(5),
        }
    }
}
