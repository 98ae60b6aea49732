//! The clock of reflectors.

use std::time::Duration;

use tokio::time::Instant;

use super::options::MAX_WAIT;

/// The time since the clock was created, on tokio's clock, which tests can pause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self { origin: read() }
    }
}

impl Clock {
    pub(crate) fn now(&self) -> Duration {
        read().saturating_duration_since(self.origin)
    }

    /// Returns the current time.
    pub(crate) fn instant() -> std::time::Instant {
        read().into_std()
    }

    /// Returns the instant at a time of this clock, limited to [`MAX_WAIT`].
    pub(crate) fn at(&self, at: Duration) -> Instant {
        self.origin.checked_add(at).unwrap_or_else(|| self.origin + MAX_WAIT)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that is injected everywhere else")]
fn read() -> Instant {
    Instant::now()
}
