//! Cooperative cancellation of work that runs on a blocking thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::status::{ApiError, Details};

/// The cancellation state of a request.
///
/// Work on a blocking thread cannot be aborted. The work polls the state between phases and in loops over input, and stops
/// once the client has disconnected or the deadline has passed. [`Cancellation::check`] is one relaxed load, cheap enough
/// for every iteration of a loop that does more than a few instructions. The default is never cancelled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation {
    is_cancelled: Option<Arc<AtomicBool>>,
}

/// A guard that cancels the request when the task that waits for the work drops it.
#[derive(Debug)]
#[must_use = "the request is cancelled when this is dropped"]
pub(crate) struct CancelOnDrop(Arc<AtomicBool>);

impl Cancellation {
    /// Returns a state that is cancelled when the guard is dropped.
    pub(crate) fn with_guard() -> (Self, CancelOnDrop) {
        let flag = Arc::new(AtomicBool::new(false));
        (Self { is_cancelled: Some(Arc::clone(&flag)) }, CancelOnDrop(flag))
    }

    /// Checks whether the work should continue.
    ///
    /// # Errors
    /// 504 if the client has disconnected or the deadline has passed.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        match &self.is_cancelled {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(deadline_exceeded()),
            _ => Ok(()),
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the 504 for a request that did not complete before its deadline.
pub(crate) fn deadline_exceeded() -> ApiError {
    ApiError::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
        .with_details(Details::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_cancelled_when_its_guard_is_dropped() {
        let (cancellation, guard) = Cancellation::with_guard();
        let copy = cancellation.clone();
        assert!(copy.check().is_ok());
        drop(guard);
        assert_eq!(copy.check().expect_err("the guard was dropped").code, 504);
        assert!(Cancellation::default().check().is_ok());
    }
}
