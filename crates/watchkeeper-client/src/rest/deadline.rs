//! Deadlines of requests.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{Either, select};
use tokio::time::Sleep;

/// The deadlines of requests that do not set their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "read_timeout")]
pub struct Deadlines {
    /// The time from sending a request to the last byte of its response; for a stream, to the end of the response head.
    ///
    /// Defaults to 65 seconds. API servers end a request after 60 seconds by default and report that with a status, which
    /// arrives before this deadline.
    pub request: Duration,
    /// The time between two chunks of a stream; `None` for no limit.
    ///
    /// Defaults to 5 minutes. A watch with bookmarks receives one about once a minute, so a longer silence is a sign of a
    /// dead connection. A followed log may be silent for longer, so [`ResourceClient::log`] sets no limit for it.
    ///
    /// [`ResourceClient::log`]: super::ResourceClient::log
    pub idle: Option<Duration>,
}

impl Deadlines {
    pub(crate) const DEFAULT: Self =
        Self { request: Duration::from_secs(65), idle: Some(Duration::from_mins(5)) };
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A span of time shared by the steps of a request.
pub(crate) struct Deadline {
    sleep: Pin<Box<Sleep>>,
    after: Duration,
}

impl Deadline {
    pub(crate) fn after(after: Duration) -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(after)), after }
    }

    /// Runs a step in the remaining time. The error is the whole span.
    pub(crate) async fn run<F: Future>(&mut self, step: F) -> Result<F::Output, Duration> {
        match select(pin!(step), &mut self.sleep).await {
            Either::Left((output, _)) => Ok(output),
            Either::Right(((), _)) => Err(self.after),
        }
    }

    /// Changes the span; its start stays.
    pub(crate) fn change(&mut self, after: Duration) {
        let end = self.sleep.deadline();
        let end = match after.checked_sub(self.after) {
            Some(longer) => end.checked_add(longer),
            None => end.checked_sub(self.after.saturating_sub(after)),
        };
        match end {
            Some(end) => self.sleep.as_mut().reset(end),
            // Out of the range of the clock.
            None => self.sleep = Box::pin(tokio::time::sleep(after)),
        }
        self.after = after;
    }

    /// Polls for the end of the span, which is the output.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        self.sleep.as_mut().poll(cx).map(|()| self.after)
    }
}
