//! Progress of a cache, and waiting for it.

use tokio::sync::watch;

use crate::ResourceVersion;

/// The reason why a wait for a version failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreshnessError {
    /// The version has no order, so it is not known when it is reached.
    #[error(
        "wait for resourceVersion {version}: it cannot be compared with other versions of this collection; wait for an \
         object with that version instead"
    )]
    Unordered {
        /// The version that was waited for.
        version: ResourceVersion,
    },
    /// The server's history was replaced. A version of the earlier history does not compare with later ones.
    #[error(
        "wait for resourceVersion {version}: the server's history was replaced, so it will not be reached; read the \
         object again and wait for its current version"
    )]
    NewEpoch {
        /// The version that was waited for.
        version: ResourceVersion,
    },
    /// The informer was not started. The wait does not wait for a start.
    #[error(
        "wait for resourceVersion {version}: the informer has not been started; call `start()` on the informer or \
         its factory before waiting"
    )]
    NotStarted {
        /// The version that was waited for.
        version: ResourceVersion,
    },
    /// The informer was stopped.
    #[error("wait for resourceVersion {version}: the informer was stopped before it was reached")]
    Stopped {
        /// The version that was waited for.
        version: ResourceVersion,
    },
}

/// The progress of a cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CacheProgress {
    /// The version up to which nothing is missing.
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) epoch: u64,
    pub(crate) has_synced: bool,
    pub(crate) is_stopped: bool,
}

impl CacheProgress {
    /// Returns whether the cache contains everything up to `version`.
    fn has_reached(&self, version: &ResourceVersion) -> bool {
        self.version.as_ref().is_some_and(|reached| reached >= version)
    }
}

/// The sender of progress. It sends after the cache has changed.
#[derive(Debug)]
pub(crate) struct ProgressSender(watch::Sender<CacheProgress>);

impl ProgressSender {
    pub(crate) fn new(has_synced: bool) -> Self {
        Self(watch::Sender::new(CacheProgress { has_synced, ..CacheProgress::default() }))
    }

    pub(crate) fn now(&self) -> CacheProgress {
        self.0.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<CacheProgress> {
        self.0.subscribe()
    }

    pub(crate) fn synced(&self) {
        self.0.send_modify(|progress| progress.has_synced = true);
    }

    pub(crate) fn stopped(&self) {
        self.0.send_modify(|progress| progress.is_stopped = true);
    }

    /// Records a change of the cache.
    pub(crate) fn advance(&self, version: Option<ResourceVersion>, is_new_epoch: bool) {
        self.0.send_modify(|progress| {
            progress.version = version;
            progress.epoch += u64::from(is_new_epoch);
        });
    }

    /// Waits until the cache contains everything up to `version`, or `is_enough` returns true. `is_enough` is
    /// called after each change of the cache.
    pub(crate) async fn wait_until(
        &self,
        version: ResourceVersion,
        mut is_enough: impl FnMut() -> bool,
    ) -> Result<(), FreshnessError> {
        let mut progress = self.0.subscribe();
        let epoch = progress.borrow().epoch;
        loop {
            {
                let progress = progress.borrow_and_update();
                if progress.epoch != epoch {
                    return Err(FreshnessError::NewEpoch { version });
                }
                if progress.has_reached(&version) {
                    return Ok(());
                }
                if progress.is_stopped {
                    return Err(FreshnessError::Stopped { version });
                }
            }
            if is_enough() {
                return Ok(());
            }
            // The sender is not dropped while `self` exists.
            let _ = progress.changed().await;
        }
    }
}
