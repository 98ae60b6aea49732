//! Failures of lists and watches.

use std::{fmt, sync::Arc, time::Duration};

use watchkeeper_client::classify::{Next, Phase, Reason};

/// A function that is called with each failure.
pub(crate) type WatchErrorHook = Arc<dyn Fn(&WatchFailure) + Send + Sync>;

/// A failed list or watch, and the recovery from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchFailure {
    /// The step of the list-watch protocol that failed.
    pub phase: Phase,
    /// The cause, as a label for metrics.
    pub reason: Reason,
    /// The cause as text: operation, object, cause and remedy. Of a server's `Status` it contains code, reason and
    /// message.
    pub message: Arc<str>,
    /// The step that recovers from the failure.
    pub next: Next,
    /// The delay before that step. `None` means immediately.
    pub retry_in: Option<Duration>,
    /// The number of consecutive failures, this one included.
    pub attempts: u32,
    /// Whether the failure can be expected to pass without intervention. If not, a permission has to be
    /// granted or a resource has to be installed.
    pub is_transient: bool,
}

impl fmt::Display for WatchFailure {
    /// Writes the cause, the next step, the delay and the number of failures, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.next_step())?;
        match self.retry_in {
            Some(delay) => write!(f, " in {delay:.1?} (failure {} in a row)", self.attempts),
            None => f.write_str(" now"),
        }
    }
}

impl WatchFailure {
    /// Returns the next step as a present participle, for messages.
    pub(super) fn next_step(&self) -> &'static str {
        match self.next {
            Next::Resume => "resuming the watch",
            Next::Relist => "relisting",
            Next::RelistFromScratch => "relisting from scratch",
        }
    }
}
