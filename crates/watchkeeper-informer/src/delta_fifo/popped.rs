//! What was taken out of the FIFO.

use std::{fmt, sync::Arc};

use kube_core::Resource;

use super::{
    DeltaFifo, Deltas,
    core::{Batch, Mark},
};
use crate::ResourceVersion;

/// Keys taken out of a [`DeltaFifo`] with their changes, to be applied to the cache.
///
/// Nothing else is popped until it is [`done`](Self::done). Dropped without that, it goes back to the front
/// of the queue, before what came in meanwhile: a consumer that was cancelled or panicked has lost nothing,
/// and the next sees some changes again.
#[must_use = "changes that are dropped unfinished go back into the queue"]
pub struct Popped<K: Resource + Send + Sync + 'static> {
    fifo: DeltaFifo<K>,
    keys: Arc<[Deltas<K>]>,
    watermark: Mark,
    is_done: bool,
}

impl<K: Resource + Send + Sync + 'static> Popped<K> {
    pub(super) fn new(fifo: DeltaFifo<K>, Batch { keys, watermark }: Batch<K>) -> Self {
        Self { fifo, keys, watermark, is_done: false }
    }

    /// The changes of each key, in the order of the queue. None when only the watermark moved.
    pub fn keys(&self) -> &[Deltas<K>] {
        &self.keys
    }

    /// The resourceVersion the cache is complete up to once this is applied; `None` before the first list or
    /// event.
    ///
    /// A list counts when all of it has been popped, an event and a bookmark when everything before them has.
    pub fn watermark(&self) -> Option<&str> {
        self.watermark.version.as_deref()
    }

    /// How often the server's history had begun anew by the [`watermark`](Self::watermark). Versions of
    /// different epochs do not compare.
    pub fn epoch(&self) -> u64 {
        self.watermark.epoch
    }

    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        self.watermark.version.as_ref().and_then(ResourceVersion::shared)
    }

    /// Says that everything is applied.
    pub fn done(mut self) {
        self.is_done = true;
        self.fifo.finish(std::mem::take(&mut self.watermark));
    }
}

impl<K: Resource + Send + Sync + 'static> Drop for Popped<K> {
    fn drop(&mut self) {
        if !self.is_done {
            self.fifo.put_back();
        }
    }
}

impl<K: Resource + Send + Sync + 'static> fmt::Debug for Popped<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Popped")
            .field("keys", &self.keys)
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}
