//! What the consumer of the FIFO holds.

use std::sync::Arc;

/// The cache the popped deltas are applied to, as far as the FIFO has to know it.
///
/// It is asked while the FIFO is locked, so it must not call the FIFO. What has been popped and not yet
/// [finished](super::Popped::done) may or may not show in it; the FIFO accounts for that itself. The cache
/// must change only by what is popped.
pub trait KnownObjects<K>: Send + Sync + 'static {
    /// The object under `namespace/name`, or `name` for one without a namespace.
    fn get(&self, key: &str) -> Option<Arc<K>>;

    /// True when there is an object under that key.
    fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Shows each key once, in any order that does not change from run to run.
    fn visit_keys(&self, visit: &mut dyn FnMut(&str));
}

/// Nothing is known: for a consumer that keeps no cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingKnown;

impl<K> KnownObjects<K> for NothingKnown {
    fn get(&self, _key: &str) -> Option<Arc<K>> {
        None
    }

    fn visit_keys(&self, _visit: &mut dyn FnMut(&str)) {}
}
