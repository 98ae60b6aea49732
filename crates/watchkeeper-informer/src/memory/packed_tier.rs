//! The packed tier of a cache without an informer, for tests and benchmarks.

use std::{fmt, sync::Arc};

use watchkeeper_client::list_watch::ReceivedItem;

use super::{MemoryPolicy, MemoryPool, MemoryStats, ObjectMemory, Packer, PackerOptions};
use crate::{
    Cached, Object,
    reflector::{Keep, Quarantined},
};

/// The form in which an informer keeps received objects, with a budget in bytes that can be changed.
pub struct PackedTier<K> {
    memory: Arc<ObjectMemory>,
    packer: Packer<K>,
}

impl<K: Object> PackedTier<K> {
    /// Creates a tier that trains a dictionary on `samples` objects.
    pub fn new(budget_bytes: u64, samples: usize) -> Self {
        let pool = MemoryPool::new(MemoryPolicy::Budget(budget_bytes));
        let memory = ObjectMemory::new("packed tier".into(), pool);
        let options = PackerOptions { min_samples: samples, measured_objects: 0 };
        let packer = Packer::new(Arc::clone(&memory), None, options);
        Self { memory, packer }
    }

    /// Keeps a received object.
    ///
    /// # Errors
    /// Returns the object as quarantined if it is rejected on receipt.
    pub fn keep(&self, item: ReceivedItem<K>) -> Result<Cached<K>, Quarantined> {
        let identity = item.identity().clone();
        self.packer.keep(item).map_err(|rejection| rejection.report(&identity))
    }

    /// Changes the budget, and evicts objects until it is kept.
    pub fn set_budget(&self, bytes: usize) {
        self.memory.pool().set_budget(bytes);
    }

    /// Returns the bytes that are charged to the budget.
    pub fn charged_bytes(&self) -> usize {
        self.memory.pool().charged_bytes()
    }

    /// Returns the cached objects that were found to be undecodable when they were read.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.memory.quarantined()
    }

    /// Returns the counters of the objects.
    pub fn stats(&self) -> MemoryStats {
        self.memory.stats()
    }
}

impl<K> fmt::Debug for PackedTier<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedTier").field("pool", self.memory.pool()).finish_non_exhaustive()
    }
}
