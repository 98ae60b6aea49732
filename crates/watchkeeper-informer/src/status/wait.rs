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
    /// Waits until a list has been read whole and handed to the sink; at once, if one ever was.
    ///
    /// Fails when waiting on is of no use: when the server refuses (no permission, no credentials it accepts, no such
    /// resource), when it was stopped, or when `within` has passed. The reflector goes on trying whatever this says.
    ///
    /// # Errors
    /// See [`SyncError`].
    pub async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        let settled = async {
            let mut status = self.status.clone();
            let is_settled = |status: &Status| self.has_synced() || refusal(status).is_some();
            let refused = status.wait_for(is_settled).await.map_or(Some(SyncError::Stopped), |s| refusal(&s));
            if self.has_synced() { Ok(()) } else { Err(refused.unwrap_or(SyncError::Stopped)) }
        };
        let Some(after) = within else {
            return settled.await;
        };
        let late = || Err(SyncError::Deadline { after, last: Box::new(self.status()) });
        tokio::time::timeout(after, settled).await.unwrap_or_else(|_| late())
    }

    /// Returns once there will be no first list without somebody's help, with why: for those who wait for something behind
    /// the list, and would otherwise wait for ever. Once there was a list, it returns only when it was stopped.
    pub async fn refusal(&self) -> SyncError {
        let mut status = self.status.clone();
        let is_final = |status: &Status| match refusal(status) {
            Some(SyncError::Stopped) => true,
            refused => refused.is_some() && !self.has_synced(),
        };
        let refused = status.wait_for(is_final).await.ok().and_then(|status| refusal(&status));
        refused.unwrap_or(SyncError::Stopped)
    }
}

/// What those who wait for the first list are to be told, if it is of no use to wait on.
fn refusal(status: &Status) -> Option<SyncError> {
    match status {
        Status::Failing { why, message, will_pass: false, .. } => {
            Some(SyncError::Refused { why: *why, message: Arc::clone(message) })
        }
        Status::Parked { message, .. } => Some(SyncError::NotServed { message: Arc::clone(message) }),
        Status::Stopped => Some(SyncError::Stopped),
        _ => None,
    }
}
