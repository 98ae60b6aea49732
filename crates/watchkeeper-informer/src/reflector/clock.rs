//! The one place that reads the time.

use std::time::Duration;

use tokio::time::Instant;

use super::options::FOR_EVER;

/// The time since the clock was made, on tokio's clock: virtual where a test paused it.
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

    /// The present moment, to be compared with other moments.
    pub(crate) fn instant() -> std::time::Instant {
        read().into_std()
    }

    /// The moment `at` this clock. One that is too far off to be told is as good as never.
    pub(crate) fn at(&self, at: Duration) -> Instant {
        self.origin.checked_add(at).unwrap_or_else(|| self.origin + FOR_EVER)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that is injected everywhere else")]
fn read() -> Instant {
    Instant::now()
}
