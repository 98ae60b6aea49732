//! Batches of popped changes.

use std::{fmt, sync::Arc};

use kube_core::Resource;

use super::{
    DeltaFifo, Deltas,
    core::{PoppedKeys, Watermark},
};
use crate::ResourceVersion;

/// Keys that were popped from a [`DeltaFifo`], with their changes.
///
/// Nothing else is popped until the batch is [`done`](Self::done). A batch that is dropped before that is
/// requeued at the front, before later changes: a consumer that was cancelled or panicked loses nothing, and
/// the next consumer receives some changes again.
#[must_use = "a batch that is dropped unfinished is requeued"]
pub struct DeltaBatch<K: Resource + Send + Sync + 'static> {
    fifo: DeltaFifo<K>,
    keys: Arc<[Deltas<K>]>,
    watermark: Watermark,
    is_done: bool,
}

impl<K: Resource + Send + Sync + 'static> DeltaBatch<K> {
    pub(super) fn new(fifo: DeltaFifo<K>, PoppedKeys { keys, watermark }: PoppedKeys<K>) -> Self {
        Self { fifo, keys, watermark, is_done: false }
    }

    /// Returns the changes of each key, in the order of the queue. Empty if only the watermark advanced.
    pub fn keys(&self) -> &[Deltas<K>] {
        &self.keys
    }

    /// Returns the resourceVersion up to which the cache is complete once this batch is applied, or `None`
    /// before the first list or event.
    ///
    /// A list counts when all of it was popped, an event or bookmark when everything before it was popped.
    pub fn watermark(&self) -> Option<&str> {
        self.watermark.version.as_deref()
    }

    /// Returns the history epoch of the [`watermark`](Self::watermark). Versions of different epochs do not
    /// compare.
    pub fn epoch(&self) -> u64 {
        self.watermark.epoch
    }

    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        self.watermark.version.as_ref().and_then(ResourceVersion::shared)
    }

    /// Finishes the batch: all of its changes were applied.
    #[doc(alias = "PopProcessFunc")]
    #[doc(alias = "RetryOnError")]
    pub fn done(mut self) {
        self.is_done = true;
        self.fifo.finish(std::mem::take(&mut self.watermark));
    }
}

impl<K: Resource + Send + Sync + 'static> Drop for DeltaBatch<K> {
    fn drop(&mut self) {
        if !self.is_done {
            self.fifo.requeue();
        }
    }
}

impl<K: Resource + Send + Sync + 'static> fmt::Debug for DeltaBatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaBatch")
            .field("keys", &self.keys)
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}
