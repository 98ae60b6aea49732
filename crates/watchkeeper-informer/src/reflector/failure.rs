//! A list or watch that ended otherwise than it should.

use std::{fmt, sync::Arc, time::Duration};

use watchkeeper_client::classify::{Next, Phase, Reason};

/// A list or a watch failed, and this is what is being done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchFailure {
    /// Where it went wrong.
    pub phase: Phase,
    /// Why, as a label for metrics.
    pub reason: Reason,
    /// Why, in words: what was tried, on what, and what to do.
    pub message: Arc<str>,
    /// How it goes on.
    pub next: Next,
    /// After how long; none for at once.
    pub retry_in: Option<Duration>,
    /// How many failures in a row this makes.
    pub attempts: u32,
    /// Whether it can be expected to pass by itself. If not, somebody has to mend it: grant a role, install a resource.
    pub will_pass: bool,
}

impl fmt::Display for WatchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = match self.next {
            Next::Resume => "watching again from the last version seen",
            Next::Relist => "listing again",
            Next::RelistFromScratch => "listing from scratch",
        };
        write!(f, "{}; {next}", self.message)?;
        match self.retry_in {
            Some(wait) => write!(f, " in {wait:.1?} (failure {} in a row)", self.attempts),
            None => f.write_str(" now"),
        }
    }
}
