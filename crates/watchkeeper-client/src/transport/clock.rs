//! The one place of the transport that reads a clock.

use jiff::Timestamp;
use tokio::time::Instant;

/// The monotonic time, virtual under tokio's paused clock.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall clock, read only to learn how long from now an expiry date is.
pub(crate) fn wall_now() -> Timestamp {
    Timestamp::now()
}
