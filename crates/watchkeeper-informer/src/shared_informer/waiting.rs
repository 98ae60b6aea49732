//! Waits for the initial list and for resourceVersions.

use std::time::Duration;

use futures_util::future::select_all;

use super::{
    StatusWatch,
    handle::{Inner, SharedIndexInformer, WeakInformer},
};
use crate::{Cached, Object, ResourceVersion, freshness::FreshnessError, status::SyncError};

/// Methods that wait.
impl<K: Object> SharedIndexInformer<K> {
    /// Returns whether the cache contains the whole initial list. Handlers may not have processed it yet; see
    /// [`Registration::has_synced`](crate::handler::Registration::has_synced).
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.distributor().progress().now().has_synced
    }

    /// Waits until the cache contains the whole initial list, for at most `within`. Without `within`, the wait has
    /// no time limit. Returns immediately if the initial list was cached earlier.
    ///
    /// # Errors
    /// Returns a [`SyncError`] if the informer was not [started](Self::start) or was stopped, if the server
    /// rejects the request (no permission, no valid credentials, no such resource), or after `within`. The
    /// informer continues to retry after an error, and the wait can be repeated.
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias = "InformerGetOption")]
    #[doc(alias = "wait_until_ready")]
    #[doc(alias = "WaitForNamedCacheSync")]
    pub async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        self.inner().wait_for_sync(within).await
    }

    /// Waits until the cache contains everything up to `version`, for example that of a write. Returns
    /// immediately if it does.
    ///
    /// The wait has no time limit; see `tokio::time::timeout`.
    ///
    /// # Errors
    /// Returns a [`FreshnessError`] if the version has no order, if the server's history was replaced, or if the
    /// informer was not started or was stopped.
    #[doc(alias = "MutationCache")]
    pub async fn wait_until(&self, version: &ResourceVersion) -> Result<(), FreshnessError> {
        if !version.is_ordered() || !self.distributor().has_order() {
            return Err(FreshnessError::Unordered { version: version.clone() });
        }
        self.inner().wait_until(version, || false).await
    }

    /// Waits until the cache contains the object with this `key` at `version` or newer, and returns the
    /// object. Also returns when the cache is complete up to `version` without the object: it was deleted
    /// since, or is not in the collection.
    ///
    /// The wait has no time limit. With a version that has no order, it ends when the object has exactly that
    /// version.
    ///
    /// # Errors
    /// Returns a [`FreshnessError`] if the server's history was replaced, or if the informer was not started or
    /// was stopped.
    pub async fn wait_for(
        &self,
        key: impl AsRef<str>,
        version: &ResourceVersion,
    ) -> Result<Option<Cached<K>>, FreshnessError> {
        let key = key.as_ref();
        let store = self.distributor().store();
        let is_there = || {
            store
                .cached(key)
                .and_then(|object| object.resource_version())
                .is_some_and(|held| held >= *version)
        };
        self.inner().wait_until(version, is_there).await?;
        Ok(store.cached(key))
    }
}

impl<K: Object> WeakInformer<K> {
    /// Waits as [`SharedIndexInformer::wait_for_sync`] does, without keeping the informer alive.
    pub(crate) async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        match self.inner.upgrade() {
            Some(inner) => inner.wait_for_sync(within).await,
            None => Err(SyncError::Stopped),
        }
    }
}

impl<K: Object> Inner<K> {
    async fn wait_until(
        &self,
        version: &ResourceVersion,
        is_enough: impl FnMut() -> bool,
    ) -> Result<(), FreshnessError> {
        if self.start.is_pending() {
            return Err(FreshnessError::NotStarted { version: version.clone() });
        }
        self.distributor.progress().wait_until(version.clone(), is_enough).await
    }

    async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        if self.start.is_pending() {
            return Err(SyncError::NotStarted);
        }
        let settled = async {
            let mut progress = self.distributor.progress().watch();
            let synced = async {
                progress.wait_for(|it| it.has_synced || it.is_stopped).await.is_ok_and(|it| it.has_synced)
            };
            if self.parts.is_empty() {
                return if synced.await { Ok(()) } else { Err(SyncError::Stopped) };
            }
            let refused = select_all(self.parts.iter().map(|part| Box::pin(part.monitor.refusal())));
            tokio::select! {
                // A cache that has synced stays synced, whatever happens later.
                biased;
                is_synced = synced => if is_synced { Ok(()) } else { Err(SyncError::Stopped) },
                (error, ..) = refused => Err(error),
            }
        };
        let Some(after) = within else {
            return settled.await;
        };
        let last = || {
            Box::new(StatusWatch::new(self.parts.iter().map(|part| part.monitor.clone()).collect()).status())
        };
        tokio::time::timeout(after, settled)
            .await
            .unwrap_or_else(|_| Err(SyncError::Deadline { after, last: last() }))
    }
}
