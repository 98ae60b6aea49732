//! The end of a watch when its custom kind is no longer served.

use std::sync::Arc;

use tokio::sync::watch;

use crate::kinds::{GroupVersionKind, Registry};

/// The custom kind of a watch. The watch ends when the kind is no longer served.
#[derive(Debug)]
pub(crate) struct WatchedKind {
    registry: Arc<Registry>,
    kind: GroupVersionKind,
    changed: watch::Receiver<u64>,
}

impl WatchedKind {
    /// Creates a watched kind.
    pub(crate) fn new(registry: Arc<Registry>, kind: GroupVersionKind) -> Self {
        let mut changed = registry.subscribe();
        // The kind may have been removed since the request began, so it is looked up at least once.
        changed.mark_changed();
        Self { registry, kind, changed }
    }

    /// Waits until the kind is no longer served.
    pub(super) async fn removed(&mut self) {
        while self.changed.changed().await.is_ok() && self.registry.kinds().by_gvk(&self.kind).is_some() {}
    }
}
