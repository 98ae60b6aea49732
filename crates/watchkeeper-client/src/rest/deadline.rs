//! How long a request may take.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::future::{Either, select};
use tokio::time::Sleep;

/// How long requests may take when they do not say so themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlines {
    /// From sending a request to the last byte of its answer; for a stream, to the end of the head.
    ///
    /// 65 seconds: API servers give up on a request after 60 by default and say so with a status worth more than our
    /// own guess, so they are left the time to.
    pub request: Duration,
    /// Between two chunks of a stream; `None` waits for ever.
    ///
    /// Five minutes. A watch with bookmarks hears something about once a minute, so a silence this long is a dead
    /// connection. A followed log may well be silent longer: say so where it is opened.
    pub idle: Option<Duration>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { request: Duration::from_secs(65), idle: Some(Duration::from_mins(5)) }
    }
}

/// One span of time shared by the steps of a request.
pub(super) struct Deadline {
    sleep: Pin<Box<Sleep>>,
    after: Duration,
}

impl Deadline {
    pub(super) fn after(after: Duration) -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(after)), after }
    }

    /// Runs a step in what is left of the time; the error is the whole span.
    pub(super) async fn run<F: Future>(&mut self, step: F) -> Result<F::Output, Duration> {
        match select(pin!(step), &mut self.sleep).await {
            Either::Left((output, _)) => Ok(output),
            Either::Right(((), _)) => Err(self.after),
        }
    }
}
