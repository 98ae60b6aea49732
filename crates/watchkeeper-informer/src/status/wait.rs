//! Waiting for the initial list, and the reasons to give up.

use std::{sync::Arc, time::Duration};

use watchkeeper_client::classify::Reason;

use super::{Monitor, Status};

/// The reason why a wait for the initial list failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "InformerSynced")]
pub enum SyncError {
    /// The informer has not been started. The wait does not wait for a start.
    #[error(
        "not synced: the informer has not been started; call `start()` on the informer or its factory before waiting"
    )]
    #[doc(alias = "ErrCacheNotStarted")]
    NotStarted,
    /// The request is rejected until a permission, credential or configuration is changed.
    #[error("not synced: {message}")]
    Refused {
        /// The cause, as a label for metrics.
        why: Reason,
        /// The cause as text: operation, object, cause and remedy.
        message: Arc<str>,
    },
    /// The server does not serve the resource.
    #[error("not synced: the resource is not served: {message}")]
    NotServed {
        /// The message of the server.
        message: Arc<str>,
    },
    /// The informer was stopped, or the handler that was waited for was removed.
    #[error("not synced: stopped before the initial list was complete")]
    #[doc(alias = "WriterDropped")]
    Stopped,
    /// The deadline passed before the first list was complete. The message includes the last failure.
    #[error("not synced within {after:?}: {}", describe(last))]
    Deadline {
        /// The time limit.
        after: Duration,
        /// The status at the deadline.
        last: Box<Status>,
    },
}

impl Monitor {
    /// Waits until the initial list has been passed to the sink completely, for at most `within`. Without `within`, the wait
    /// has no time limit. Returns immediately if the initial list was passed earlier.
    ///
    /// A caller that runs a reflector or a controller itself must poll its future while waiting.
    ///
    /// # Errors
    /// Returns a [`SyncError`] if the informer was not started, if the reflector was stopped, if the server rejects the
    /// request (no permission, no valid credentials, no such resource), or after `within`. The reflector continues to
    /// retry after an error, and the wait can be repeated.
    pub async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        if self.start.is_pending() {
            return Err(SyncError::NotStarted);
        }
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

    /// Waits until the initial list is unlikely to succeed, and returns the reason: the server rejects the request, the
    /// informer was not started, or the reflector was stopped. After the initial list, only a stop ends the wait.
    ///
    /// Use this in a `select` beside a wait for a condition that requires the initial list.
    pub async fn refusal(&self) -> SyncError {
        if self.start.is_pending() {
            return SyncError::NotStarted;
        }
        let mut status = self.status.clone();
        let is_final = |status: &Status| match refusal(status) {
            Some(SyncError::Stopped) => true,
            refused => refused.is_some() && !self.has_synced(),
        };
        let refused = status.wait_for(is_final).await.ok().and_then(|status| refusal(&status));
        refused.unwrap_or(SyncError::Stopped)
    }
}

/// Formats the status with its cause, if any.
fn describe(status: &Status) -> String {
    match status {
        Status::Failing { message, attempts, .. } => format!("failing ({attempts} attempts): {message}"),
        Status::Listing { received, .. } => format!("listing, {received} objects received"),
        status => status.label().to_owned(),
    }
}

/// Returns the error of waits for the initial list, if waiting cannot succeed in this status.
fn refusal(status: &Status) -> Option<SyncError> {
    match status {
        Status::Failing { why, message, is_transient: false, .. } => {
            Some(SyncError::Refused { why: *why, message: Arc::clone(message) })
        }
        Status::Parked { message, .. } => Some(SyncError::NotServed { message: Arc::clone(message) }),
        Status::Stopped => Some(SyncError::Stopped),
        _ => None,
    }
}
