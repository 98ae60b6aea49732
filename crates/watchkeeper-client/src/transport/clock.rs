//! The only place in the transport that reads a clock.

use jiff::Timestamp;
use tokio::time::Instant;

/// Returns the monotonic time, which is virtual under tokio's paused clock.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the wall-clock time, used only to compute the remaining lifetime of a credential.
pub(crate) fn wall_now() -> Timestamp {
    Timestamp::now()
}
