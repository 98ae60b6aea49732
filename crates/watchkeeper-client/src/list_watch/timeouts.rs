//! Time limits of lists and watches.

use std::time::Duration;

/// Time limits of lists and watches. Exceeding one is an [`Error::Deadline`](crate::Error::Deadline).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The time from sending a request to receiving the response head. Defaults to 65 s, because API servers
    /// time out after 60 s and then report the reason.
    pub head: Duration,
    /// The maximum time of a list without progress, that is, without a complete object or the end of the
    /// list. Defaults to 60 s. The total time is not limited, because a large list over a slow connection can
    /// take long.
    pub list_progress: Duration,
    /// The minimum time for which a server is requested to keep a watch open. The actual time is chosen at
    /// random between one and two times this, so that watches opened together do not end together. Defaults
    /// to 5 minutes, as in client-go.
    pub watch: Duration,
    /// The additional time after which a watch that the server has not ended counts as dead. Defaults to 5 s.
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
