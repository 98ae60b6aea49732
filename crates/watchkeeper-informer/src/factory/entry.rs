//! The informers of a factory, independent of their type.

use std::{any::Any, pin::Pin, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{InformerStats, Object, SharedIndexInformer, WeakInformer, status::SyncError};

pub(super) type SyncWait<'a> = Pin<Box<dyn Future<Output = Result<(), SyncError>> + Send + 'a>>;

/// The operations of a factory on an informer of any type. They do not keep the informer alive.
pub(super) trait AnyInformer: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// Returns whether a handle to the informer exists and the informer was not stopped.
    fn is_alive(&self) -> bool;
    fn start(&self);
    fn stop(&self);
    fn wait_for_sync(&self, within: Option<Duration>) -> SyncWait<'_>;
    /// Returns the path of the type of the objects.
    fn object_type(&self) -> &'static str;
    /// Returns the counters. `None` if no handle to the informer exists.
    fn stats(&self) -> Option<InformerStats>;
}

impl<K: Object> AnyInformer for WeakInformer<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_alive(&self) -> bool {
        self.is_alive()
    }

    fn start(&self) {
        if let Some(informer) = self.upgrade() {
            informer.start();
        }
    }

    fn stop(&self) {
        if let Some(informer) = self.upgrade() {
            informer.stop();
        }
    }

    fn wait_for_sync(&self, within: Option<Duration>) -> SyncWait<'_> {
        Box::pin(self.wait_for_sync(within))
    }

    fn object_type(&self) -> &'static str {
        std::any::type_name::<K>()
    }

    fn stats(&self) -> Option<InformerStats> {
        Some(self.upgrade()?.stats())
    }
}

/// An informer that a factory made: one that it owns, or one that it has released.
pub(super) struct Entry {
    informer: Arc<dyn AnyInformer>,
    /// The factory's handle, or none after a release. The factory shares and shuts down a released informer for as
    /// long as others hold it.
    ownership: Option<Ownership>,
}

/// A factory's handle to an informer. The last handle to an informer runs code of the user when it is dropped, so this
/// is not to be dropped under a lock.
pub(super) struct Ownership {
    _informer: Box<dyn Any + Send + Sync>,
    released: watch::Sender<()>,
}

impl Ownership {
    fn of<K: Object>(informer: SharedIndexInformer<K>) -> Self {
        Self { _informer: Box::new(informer), released: watch::Sender::new(()) }
    }
}

impl Entry {
    /// Returns the entry of an informer that the factory owns.
    pub(super) fn owning<K: Object>(informer: SharedIndexInformer<K>) -> Self {
        Self { informer: Arc::new(informer.downgrade()), ownership: Some(Ownership::of(informer)) }
    }

    pub(super) fn informer(&self) -> &Arc<dyn AnyInformer> {
        &self.informer
    }

    /// Returns the informer if it is alive. An informer that was released is owned by the factory again.
    pub(super) fn request<K: Object>(&mut self) -> Option<SharedIndexInformer<K>> {
        let informer = self.weak::<K>().filter(|informer| informer.is_alive())?.upgrade()?;
        self.ownership.get_or_insert_with(|| Ownership::of(informer.clone()));
        Some(informer)
    }

    pub(super) fn is_of<K: Object>(&self, informer: &SharedIndexInformer<K>) -> bool {
        self.weak::<K>().is_some_and(|weak| weak.is_of(informer))
    }

    /// Ends the ownership when the result is dropped. None for an informer that was released before.
    pub(super) fn release(&mut self) -> Option<Ownership> {
        self.ownership.take()
    }

    /// Returns a receiver whose sender is dropped when the informer is released. None for one that has been.
    pub(super) fn released(&self) -> Option<watch::Receiver<()>> {
        Some(self.ownership.as_ref()?.released.subscribe())
    }

    /// Returns whether the factory has to remember the informer.
    pub(super) fn is_needed(&self) -> bool {
        self.ownership.is_some() || self.informer.is_alive()
    }

    fn weak<K: Object>(&self) -> Option<&WeakInformer<K>> {
        self.informer.as_any().downcast_ref()
    }
}
