//! Waiting for the first list, with an end to the waiting.

use std::{sync::Arc, time::Duration};

use watchkeeper_client::classify::Reason;

use super::{Monitor, Status};

/// Why waiting for the first list was given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// It will not work until somebody mends it.
    #[error("not synced: {message}")]
    Refused {
        /// Why, as a label for metrics.
        why: Reason,
        /// Why, in words: what was tried, on what, and what to do.
        message: Arc<str>,
    },
    /// The server does not serve the resource.
    #[error("not synced: the resource is not served: {message}")]
    NotServed {
        /// What the server said.
        message: Arc<str>,
    },
    /// It was stopped.
    #[error("not synced: it was stopped before the first list was complete")]
    Stopped,
    /// It took too long.
    #[error("not synced within {after:?}: {}", last.label())]
    Deadline {
        /// How long it was waited.
        after: Duration,
        /// The status at the end of that time.
        last: Box<Status>,
    },
}

impl Monitor {
    /// Waits until the list has been read whole and handed to the sink.
    ///
    /// Fails when waiting on is of no use: when the server refuses (no permission, no credentials it accepts, no such
    /// resource), when it was stopped, or when `within` has passed. The reflector goes on trying whatever this says.
    ///
    /// # Errors
    /// See [`SyncError`].
    pub async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        let mut status = self.status.clone();
        let settled = status.wait_for(|status| verdict(status).is_some());
        let waited = match within {
            Some(within) => tokio::time::timeout(within, settled).await,
            None => Ok(settled.await),
        };
        match (waited, within) {
            (Ok(Ok(status)), _) => verdict(&status).unwrap_or(Err(SyncError::Stopped)),
            (Ok(Err(_)), _) | (Err(_), None) => Err(SyncError::Stopped),
            (Err(_), Some(after)) => Err(SyncError::Deadline { after, last: Box::new(self.status()) }),
        }
    }

    /// Returns once there will be no list without somebody's help, with why: for those who wait for something behind the list
    /// and would otherwise wait for ever.
    pub async fn refusal(&self) -> SyncError {
        let mut status = self.status.clone();
        let refused = |status: &Status| verdict(status).and_then(Result::err);
        match status.wait_for(|status| refused(status).is_some()).await {
            Ok(status) => refused(&status).unwrap_or(SyncError::Stopped),
            Err(_) => SyncError::Stopped,
        }
    }
}

/// What a status means to those who wait for the first list: nothing yet, or how the waiting ends.
fn verdict(status: &Status) -> Option<Result<(), SyncError>> {
    match status {
        Status::Synced { .. } | Status::Stale { .. } => Some(Ok(())),
        Status::Failing { why, message, will_pass: false, .. } => {
            Some(Err(SyncError::Refused { why: *why, message: Arc::clone(message) }))
        }
        Status::Parked { message, .. } => Some(Err(SyncError::NotServed { message: Arc::clone(message) })),
        Status::Stopped => Some(Err(SyncError::Stopped)),
        Status::Connecting | Status::Listing { .. } | Status::Failing { .. } => None,
    }
}
