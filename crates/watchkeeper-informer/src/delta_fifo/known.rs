//! The cache as the FIFO uses it.

use crate::Cached;

/// Read access of a [`DeltaFifo`](super::DeltaFifo) to the cache to which its changes are applied.
///
/// [`DeltaFifo::replace`](super::DeltaFifo::replace) uses it to find the objects that a list no longer contains.
///
/// The methods are called while the FIFO is locked and must not call the FIFO. Changes that were popped but
/// not [finished](super::DeltaBatch::done) may or may not be visible; the FIFO takes that into account. The
/// cache must be changed by popped changes only.
#[doc(alias = "KeyListerGetter")]
pub trait KnownObjects<K>: Send + Sync + 'static {
    /// Returns the object with this key (`namespace/name`, or `name` for cluster-scoped objects).
    fn get(&self, key: &str) -> Option<Cached<K>>;

    /// Returns whether the cache contains an object with this key.
    fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Calls `visit` with each key once, in a deterministic order.
    fn visit_keys(&self, visit: &mut dyn FnMut(&str));
}

/// A [`KnownObjects`] without objects, for consumers that keep no cache.
///
/// Deletions that a list implies are then queued only for objects that are queued or in flight.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingKnown;

impl<K> KnownObjects<K> for NothingKnown {
    fn get(&self, _key: &str) -> Option<Cached<K>> {
        None
    }

    fn visit_keys(&self, _visit: &mut dyn FnMut(&str)) {}
}
