//! A queue as the metrics read it.

use std::sync::{Arc, Weak};

use super::{Key, Shared, WorkQueue};
use crate::{QueueStats, core::Core};

/// A queue of any key type.
pub(crate) trait Sample: Send + Sync {
    /// Returns the figures of the queue.
    fn stats(&self) -> QueueStats;
}

impl<K: Key> Sample for Shared<K> {
    fn stats(&self) -> QueueStats {
        self.observe(Core::stats)
    }
}

impl<K: Key> WorkQueue<K> {
    /// Returns a reference for the metrics, which does not keep the queue alive.
    pub(crate) fn downgrade(&self) -> Weak<dyn Sample> {
        let shared: Arc<dyn Sample> = Arc::clone(&self.shared) as _;
        Arc::downgrade(&shared)
    }
}
