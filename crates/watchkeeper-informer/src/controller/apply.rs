//! Effects of deltas on the cache and on handlers.

use std::{fmt, time::Duration};

use tracing::error;

use crate::{
    ApplyResult, Object, ResourceVersion, Store, StoreError, StoreOp,
    delta_fifo::{DeltaBatch, Deltas},
    reflector::VersionOrder,
    store::PreparedOps,
    sync::Mutex,
    transition::{CacheUpdate, Notification, transition},
};

/// The consumer of the batches that a [`InformerController`](super::InformerController) pops.
///
/// It is called with one batch after the other, in the task of the controller, which reads nothing meanwhile.
/// Batches of different sources (one for each namespace, if there are several) contain different keys.
pub trait Process<K: Object>: Send + Sync + 'static {
    /// Applies a batch to the cache and notifies handlers.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the cache rejects the batch. The controller then ends.
    fn process(&self, part: usize, batch: &DeltaBatch<K>) -> Result<(), StoreError>;

    /// Called when the initial list of a source has been processed.
    fn part_synced(&self, part: usize);

    /// Returns the interval at which to call [`is_resync_due`](Self::is_resync_due), fixed from now on; zero
    /// for never.
    fn resync_check_period(&self) -> Duration;

    /// Returns whether all objects are to be resynced now.
    fn is_resync_due(&self) -> bool;
}

/// The effects of deltas: operations on the cache, then notifications to handlers.
#[must_use = "the cache has to be updated, and then handlers have to be notified"]
pub struct DeltaEffects<K> {
    /// The operations on the cache, at most one for each key.
    pub ops: Vec<StoreOp<K>>,
    /// The notifications, in the order of the deltas.
    pub notifications: Vec<Notification<K>>,
}

impl<K: Object> fmt::Debug for DeltaEffects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events: Vec<_> = self
            .notifications
            .iter()
            .map(|notification| (&notification.event, notification.audience))
            .collect();
        f.debug_struct("DeltaEffects").field("ops", &self.ops).field("notifications", &events).finish()
    }
}

/// Returns the effects of the deltas of several keys, each of which occurs once, on the contents of `store`.
/// Applies [`transition`] to the deltas of each key in order.
///
/// Changes nothing. The caller that applies the operations must be the only writer of these keys.
pub fn process_deltas<K: Object>(keys: &[Deltas<K>], store: &Store<K>) -> DeltaEffects<K> {
    let mut ops = Vec::with_capacity(keys.len());
    let mut notifications = Vec::with_capacity(keys.len());
    for deltas in keys {
        let object = &deltas.oldest().object;
        // An object without a valid key cannot be stored. Sources quarantine such objects.
        let key = match object.key_ref().check() {
            Ok(key) => key,
            Err(error) => {
                error!(%error, "object without a valid key dropped");
                continue;
            }
        };
        let stored = store.cached_in(Some(key.namespace), key.name);
        let mut current = stored.clone();
        for delta in deltas.iter() {
            match transition(delta, current.as_ref(), &mut notifications) {
                CacheUpdate::Keep => {}
                CacheUpdate::Set(object) => current = Some(object),
                CacheUpdate::Remove => current = None,
            }
        }
        match (stored, current) {
            (None, None) => {}
            (Some(before), Some(after)) if before.ptr_eq(&after) => {}
            // The key was checked above, so neither operation is rejected.
            (_, Some(object)) => ops.extend(StoreOp::put(object)),
            (Some(_), None) => ops.extend(key.to_key().map(StoreOp::delete)),
        }
    }
    DeltaEffects { ops, notifications }
}

/// A store, with the progress of each of its sources.
pub(crate) struct TrackedStore<K> {
    pub(crate) store: Store<K>,
    progress: Mutex<AllProgress>,
    pub(crate) versions: VersionOrder,
}

impl<K: Object> TrackedStore<K> {
    pub(crate) fn new(store: Store<K>, parts: usize, versions: VersionOrder) -> Self {
        Self { store, progress: Mutex::new(AllProgress(vec![SourceProgress::default(); parts])), versions }
    }

    /// Computes the effects of a batch, ready to be applied. Runs index functions, so no lock may be held.
    pub(crate) fn prepare(&self, batch: &DeltaBatch<K>) -> (PreparedOps<K>, Vec<Notification<K>>) {
        let DeltaEffects { ops, notifications } = process_deltas(batch.keys(), &self.store);
        (self.store.prepare(ops), notifications)
    }

    /// Applies a prepared batch without running user code. If an index was added meanwhile, returns the
    /// operations as the outer error, to be completed.
    pub(crate) fn commit(
        &self,
        part: usize,
        batch: &DeltaBatch<K>,
        ops: PreparedOps<K>,
    ) -> Result<Result<Committed<K>, StoreError>, PreparedOps<K>> {
        let mut progress = self.progress.lock();
        let reached = SourceProgress { version: batch.resource_version(), epoch: batch.epoch() };
        let (version, is_new_epoch) = progress.with(part, &reached);
        // Opaque versions do not describe the whole collection.
        let version = version.filter(|version| {
            self.versions == VersionOrder::Ordered && (is_new_epoch || self.is_no_step_back(version))
        });
        let applied = self.store.apply_prepared(ops, version.as_ref(), is_new_epoch)?;
        Ok(applied.map(|applied| {
            progress.set(part, reached);
            Committed { applied, is_new_epoch }
        }))
    }

    fn is_no_step_back(&self, version: &ResourceVersion) -> bool {
        self.store.resource_version().is_none_or(|held| !held.is_ordered() || *version >= held)
    }
}

/// The result of a batch. Contains the replaced objects, to be dropped outside of the locks.
pub(crate) struct Committed<K> {
    pub(crate) applied: ApplyResult<K>,
    pub(crate) is_new_epoch: bool,
}

/// The progress of one source.
#[derive(Debug, Clone, Default)]
struct SourceProgress {
    version: Option<ResourceVersion>,
    epoch: u64,
}

/// The progress of each source. The combined progress is that of the source that has progressed least.
#[derive(Debug)]
struct AllProgress(Vec<SourceProgress>);

impl AllProgress {
    /// Returns the combined version once `part` has made this progress, and whether a new epoch starts with
    /// it.
    fn with(&self, part: usize, reached: &SourceProgress) -> (Option<ResourceVersion>, bool) {
        let others =
            self.0.iter().enumerate().filter(|(other, _)| *other != part).map(|(_, progress)| progress);
        let version = others.fold(reached.version.clone(), |least, progress| {
            let (least, version) = (least?, progress.version.clone()?);
            match least.partial_cmp(&version)? {
                std::cmp::Ordering::Greater => Some(version),
                _ => Some(least),
            }
        });
        (version, self.0.get(part).is_some_and(|progress| progress.epoch != reached.epoch))
    }

    fn set(&mut self, part: usize, reached: SourceProgress) {
        if let Some(progress) = self.0.get_mut(part) {
            *progress = reached;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(version: &str, epoch: u64) -> SourceProgress {
        SourceProgress { version: ResourceVersion::new(version), epoch }
    }

    #[test]
    fn the_combined_progress_is_that_of_the_source_that_has_progressed_least() {
        let mut progress = AllProgress(vec![SourceProgress::default(); 2]);
        assert_eq!(progress.with(0, &at("7", 0)), (None, false), "the other source has no version");
        progress.set(0, at("7", 0));
        assert_eq!(progress.with(1, &at("10", 0)), (ResourceVersion::new("7"), false));
        progress.set(1, at("10", 0));
        assert_eq!(progress.with(0, &at("12", 0)), (ResourceVersion::new("10"), false));
        assert_eq!(progress.with(0, &at("3", 1)), (ResourceVersion::new("3"), true), "a new epoch");
        assert_eq!(progress.with(0, &at("x", 0)), (None, false), "versions without an order have no minimum");
    }

    #[test]
    fn the_progress_of_a_single_source_is_its_own() {
        let progress = AllProgress(vec![SourceProgress::default()]);
        assert_eq!(progress.with(0, &at("x", 0)), (ResourceVersion::new("x"), false));
    }
}
