//! The kind a watch is about, when that kind can go.

use std::sync::Arc;

use tokio::sync::watch;

use crate::kinds::{GroupVersionKind, Registry};

/// A custom kind that is being watched. A watch of it ends when it is served no longer.
#[derive(Debug)]
pub(crate) struct WatchedKind {
    registry: Arc<Registry>,
    kind: GroupVersionKind,
    changed: watch::Receiver<u64>,
}

impl WatchedKind {
    /// This kind in this registry.
    pub(crate) fn new(registry: Arc<Registry>, kind: GroupVersionKind) -> Self {
        let mut changed = registry.subscribe();
        // It may have gone since the request began, so it is looked up once in any case.
        changed.mark_changed();
        Self { registry, kind, changed }
    }

    /// Ends when the kind is served no longer.
    pub(super) async fn gone(&mut self) {
        while self.changed.changed().await.is_ok() && self.registry.kinds().by_gvk(&self.kind).is_some() {}
    }
}
