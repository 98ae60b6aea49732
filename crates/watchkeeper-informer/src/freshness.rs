//! How far a cache has come, to be waited on.

use tokio::sync::watch;

use crate::ResourceVersion;

/// The reason why a wait for a version failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreshnessError {
    /// The version has no place among others, so it cannot be told when it is reached.
    #[error(
        "wait for resourceVersion {version}: it has no order here, as decimal numbers have that count for the whole \
         collection; wait for an object to have it instead"
    )]
    Unordered {
        /// The version.
        version: ResourceVersion,
    },
    /// The server's history began anew. A version from before says nothing about what comes after.
    #[error(
        "wait for resourceVersion {version}: the server's history has begun anew, and it will not be reached; read \
         again what is to be waited for"
    )]
    NewEpoch {
        /// The version.
        version: ResourceVersion,
    },
    /// The informer has not been started. The wait does not wait for a start.
    #[error(
        "wait for resourceVersion {version}: the informer has not been started; call `start()` on the informer or \
         its factory before waiting"
    )]
    NotStarted {
        /// The version that was to be waited for.
        version: ResourceVersion,
    },
    /// The informer was stopped.
    #[error("wait for resourceVersion {version}: the informer was stopped before it was reached")]
    Stopped {
        /// The version.
        version: ResourceVersion,
    },
}

/// How far a cache has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Nothing up to this version is missing.
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) epoch: u64,
    pub(crate) has_synced: bool,
    pub(crate) is_stopped: bool,
}

impl Progress {
    /// Whether everything up to this version is in the cache.
    fn has_reached(&self, version: &ResourceVersion) -> bool {
        self.version.as_ref().is_some_and(|reached| reached >= version)
    }
}

/// Where progress is written. It is sent after the cache has changed.
#[derive(Debug)]
pub(crate) struct Progressing(watch::Sender<Progress>);

impl Progressing {
    pub(crate) fn new(has_synced: bool) -> Self {
        Self(watch::Sender::new(Progress { has_synced, ..Progress::default() }))
    }

    pub(crate) fn now(&self) -> Progress {
        self.0.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.0.subscribe()
    }

    pub(crate) fn synced(&self) {
        self.0.send_modify(|progress| progress.has_synced = true);
    }

    pub(crate) fn stopped(&self) {
        self.0.send_modify(|progress| progress.is_stopped = true);
    }

    /// The cache has changed.
    pub(crate) fn advance(&self, version: Option<ResourceVersion>, is_new_epoch: bool) {
        self.0.send_modify(|progress| {
            progress.version = version;
            progress.epoch += u64::from(is_new_epoch);
        });
    }

    /// Waits until everything up to this version is in the cache, or `is_enough` says that it will do. It is
    /// asked whenever the cache has changed.
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
            // The sender is here.
            let _ = progress.changed().await;
        }
    }
}
