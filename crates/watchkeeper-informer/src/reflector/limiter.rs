//! How many lists may be read at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many reflectors may read lists at the same time, shared by all that are given a clone.
///
/// At start-up, and when a server comes back, every informer of a program wants its list. Lists are what is dear, for the
/// server and for the memory here; this has them take turns. A watch needs no turn, and neither does waiting after a
/// failure.
#[derive(Debug, Clone)]
pub struct RelistLimiter {
    permits: Arc<Semaphore>,
}

impl RelistLimiter {
    /// At most this many at a time; at least one.
    pub fn new(lists_at_once: usize) -> Self {
        let permits = lists_at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(permits)) }
    }

    /// A turn, in order of asking. Given back when dropped.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }
}
