//! The limit of concurrent lists.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limit of concurrent lists, shared by all reflectors with a clone.
///
/// At start-up and after an outage, every informer of a program lists its collection. Lists are expensive for
/// the server and for the memory of the client. Watches and delays after failures are not limited.
#[derive(Debug, Clone)]
pub struct RelistLimiter {
    permits: Arc<Semaphore>,
}

impl RelistLimiter {
    /// Creates a limiter that allows `lists_at_once` concurrent lists, at least one.
    pub fn new(lists_at_once: usize) -> Self {
        let permits = lists_at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(permits)) }
    }

    /// Acquires a permit, in the order of the calls. Dropping the permit releases it.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }
}
