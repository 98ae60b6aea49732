//! The time of a run. Programs in other processes are measured, so the time is real.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::{Error, Result};

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "the one place of the driver that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Evaluates `holds` every `interval` until it returns true.
///
/// # Errors
/// The first error of `holds`, or [`Error::Timeout`] after `within`.
pub(crate) async fn wait_until(
    condition: &str,
    interval: Duration,
    within: Duration,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let start = now();
    while !holds().await? {
        if start.elapsed() > within {
            return Err(Error::Timeout { condition: condition.to_owned(), within });
        }
        sleep(interval).await;
    }
    Ok(())
}
