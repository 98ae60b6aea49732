//! The tokens that stop a run of a controller.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{self, Wake, Waker},
};

use tokio::task::coop::unconstrained;
use tokio_util::sync::CancellationToken;

/// The tokens that stop a run. Workers share one value, because each clone of a token acquires its lock.
#[derive(Debug)]
pub(crate) struct StopTokens {
    /// Cancelled when no reconcile may begin any more.
    pub(crate) stop: CancellationToken,
    /// Cancelled when running reconciles are dropped.
    pub(crate) abort: CancellationToken,
    stop_flag: Arc<StopFlag>,
}

/// A flag that is set when a token is cancelled. Reading the token itself acquires a lock, which is expensive for every
/// key of every worker.
#[derive(Debug, Default)]
struct StopFlag(AtomicBool);

impl Wake for StopFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl StopTokens {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop, abort: CancellationToken::new(), stop_flag: Arc::default() }
    }

    /// Keeps [`is_stopping`](Self::is_stopping) up to date for as long as the returned future is held.
    pub(crate) fn watch_stop(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // Without `unconstrained`, tokio could wake this waker to make a task yield, although nothing was cancelled.
        let mut cancelled = Box::pin(unconstrained(self.stop.cancelled()));
        let waker = Waker::from(Arc::clone(&self.stop_flag));
        if cancelled.as_mut().poll(&mut task::Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
        cancelled
    }

    /// Returns whether no reconcile may begin any more. Reads the token only if the flag is set.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop_flag.0.load(Ordering::Acquire) && self.stop.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_stop_request_is_visible_immediately() {
        let request = CancellationToken::new();
        let tokens = StopTokens::new(request.child_token());
        let watch = tokens.watch_stop();
        assert!(!tokens.is_stopping());
        request.cancel();
        assert!(tokens.is_stopping(), "without polling a future");
        drop(watch);

        let tokens = StopTokens::new(request.child_token());
        let _watch = tokens.watch_stop();
        assert!(tokens.is_stopping(), "a request before the watch");
    }

    #[tokio::test]
    async fn a_task_without_budget_does_not_set_the_stop_flag() {
        // Any other future would wake its task here, to be polled again later.
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().now_or_never();
        }
        let request = CancellationToken::new();
        let tokens = StopTokens::new(request.child_token());
        let _watch = tokens.watch_stop();
        assert!(!tokens.stop_flag.0.load(Ordering::Relaxed));
        request.cancel();
        assert!(tokens.is_stopping());
    }
}
