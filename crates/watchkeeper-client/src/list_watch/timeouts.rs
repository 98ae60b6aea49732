//! How long a server may take.

use std::time::Duration;

/// How long lists and watches may take. Each ends in [`Error::Deadline`](crate::Error::Deadline).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From sending a request to the head of its answer. 65 seconds: API servers give up after 60 and then say why.
    pub head: Duration,
    /// From sending the request of a page to its last byte, the reader's own time included. 5 minutes.
    pub list: Duration,
    /// Between two chunks of a page. 60 seconds.
    pub list_idle: Duration,
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
            list: Duration::from_mins(5),
            list_idle: Duration::from_mins(1),
            watch: Duration::from_mins(5),
            watch_grace: Duration::from_secs(5),
        }
    }
}
