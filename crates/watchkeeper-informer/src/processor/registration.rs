//! A handler's place among the others.

use std::{fmt, future::poll_fn, sync::Arc};

use kube_core::Resource;

use super::{ListenerStatus, Shared, log::ListenerId};
use crate::{start::Start, status::SyncError};

/// The registration of a handler.
///
/// Dropping it changes nothing: the handler stays for as long as its informer runs, so `add_handler(…)?;` is
/// enough. Keep it to remove the handler, to wait until it has synced, or to read its status.
#[doc(alias = "ResourceEventHandlerRegistration")]
pub struct Registration<K> {
    shared: Arc<Shared<K>>,
    id: ListenerId,
    start: Start,
}

impl<K: Resource + Send + Sync + 'static> Registration<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, id: ListenerId) -> Self {
        Self { shared, id, start: Start::default() }
    }

    /// Makes waits on the handler fail until `start` is complete.
    pub(crate) fn starting_with(self, start: &Start) -> Self {
        Self { start: start.clone(), ..self }
    }

    /// True when the informer has processed its first list, and the handler has *returned* from everything
    /// that was there at first, well or by a panic. False for a handler that was removed.
    pub fn has_synced(&self) -> bool {
        self.status().is_some_and(|status| status.has_synced)
    }

    /// Waits until [`has_synced`](Self::has_synced).
    ///
    /// The wait does not end while the server rejects the list; wait for the
    /// [informer](crate::SharedIndexInformer::wait_for_sync) first, which reports the reason.
    ///
    /// # Errors
    /// [`SyncError::NotStarted`] when the informer was not started, and [`SyncError::Stopped`] when the handler
    /// was removed or the informer was stopped.
    pub async fn synced(&self) -> Result<(), SyncError> {
        if self.start.is_pending() {
            return Err(SyncError::NotStarted);
        }
        let is_synced = poll_fn(|context| self.shared.log.lock().poll_synced(self.id, context.waker())).await;
        if is_synced { Ok(()) } else { Err(SyncError::Stopped) }
    }

    /// How the handler is doing; `None` when it is gone.
    pub fn status(&self) -> Option<ListenerStatus> {
        let now = self.shared.now();
        self.shared.operate(|log, _| log.status(self.id, now))
    }

    /// Removes the handler, without waiting for the call it may be in. What it has not been told, it is not
    /// told any more. Doing it again does nothing.
    pub fn stop(&self) {
        self.shared.operate(|log, after| log.stop(self.id, after));
    }

    /// Removes the handler, and waits until the call it may be in has returned. After this it is not called
    /// again.
    ///
    /// From within the handler itself it does not wait, since that would be for ever: the call it is made
    /// from is then the last. (Waiting within the handler for *another* task that removes the handler does
    /// wait for ever.) Dropped while it waits, the handler is stopped all the same.
    pub async fn remove(&self) {
        self.stop();
        let is_own_call = self.shared.log.lock().is_run_by(self.id, tokio::task::try_id());
        if !is_own_call {
            poll_fn(|context| self.shared.log.lock().poll_gone(self.id, context.waker())).await;
        }
    }
}

impl<K> Clone for Registration<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), id: self.id, start: self.start.clone() }
    }
}

impl<K> fmt::Debug for Registration<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("id", &self.id).finish_non_exhaustive()
    }
}
