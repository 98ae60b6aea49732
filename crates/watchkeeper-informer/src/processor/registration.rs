//! Registrations and status of handlers.

use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use kube_core::Resource;

use super::{Shared, log::ListenerId};
use crate::{start::InformerStart, status::SyncError};

/// The registration of a handler.
///
/// Dropping a registration has no effect: the handler stays registered until its informer stops, so
/// `add_handler(…)?;` is enough. Keep the registration to remove the handler, to wait until it has synced, or
/// to read its status.
#[doc(alias = "ResourceEventHandlerRegistration")]
pub struct Registration<K> {
    shared: Arc<Shared<K>>,
    id: ListenerId,
    start: InformerStart,
}

impl<K: Resource + Send + Sync + 'static> Registration<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, id: ListenerId) -> Self {
        Self { shared, id, start: InformerStart::default() }
    }

    /// Makes waits on the handler fail until `start` is complete.
    pub(crate) fn starting_with(self, start: &InformerStart) -> Self {
        Self { start: start.clone(), ..self }
    }

    /// Returns whether the handler has synced: the informer has processed the initial list, and the handler
    /// has *returned* from every event of it, normally or by a panic. Returns false for a handler that was
    /// removed.
    pub fn has_synced(&self) -> bool {
        self.status().is_some_and(|status| status.has_synced)
    }

    /// Waits until [`has_synced`](Self::has_synced).
    ///
    /// The wait does not end while the server rejects the list; wait for the
    /// [informer](crate::SharedIndexInformer::wait_for_sync) first, which reports the reason.
    ///
    /// # Errors
    /// Returns [`SyncError::NotStarted`] if the informer was not started, and [`SyncError::Stopped`] when the
    /// handler was removed or the informer was stopped.
    pub async fn synced(&self) -> Result<(), SyncError> {
        if self.start.is_pending() {
            return Err(SyncError::NotStarted);
        }
        let is_synced = poll_fn(|context| self.shared.log.lock().poll_synced(self.id, context.waker())).await;
        if is_synced { Ok(()) } else { Err(SyncError::Stopped) }
    }

    /// Returns the status of the handler, or `None` after it was removed.
    pub fn status(&self) -> Option<HandlerStatus> {
        let now = self.shared.now();
        self.shared.operate(|log, _| log.status(self.id, now))
    }

    /// Removes the handler without waiting for a running call. Pending events are not delivered. Calling this
    /// again has no effect.
    #[doc(alias = "ShutDownEventHandler")]
    pub fn stop(&self) {
        self.shared.operate(|log, deferred| log.stop(self.id, deferred));
    }

    /// Removes the handler and waits until a running call has returned. The handler is not called afterwards.
    ///
    /// When called by the handler itself, this does not wait, because the wait would never end: the running
    /// call is the last one. (A handler that waits for *another* task that removes the handler does
    /// deadlock.) The handler is removed even if the future is dropped.
    #[doc(alias = "RemoveEventHandler")]
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

/// The status of one handler at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// The number of events that the handler was called with, including calls that panicked.
    pub delivered: u64,
    /// The number of pending events: those in the log, or the keys of a coalesced backlog. Includes up to one
    /// batch of events whose delivery has started.
    pub pending: u64,
    /// The time that the oldest pending event has waited. For a coalesced backlog, that of the oldest event
    /// when it was coalesced. Zero without pending events.
    pub lag: Duration,
    /// Whether the backlog is coalesced.
    pub is_coalescing: bool,
    /// The number of times that the backlog was coalesced.
    pub times_coalesced: u64,
    /// The number of events that were merged with another one or canceled by it, and therefore not delivered.
    pub events_coalesced: u64,
    /// The number of calls that panicked.
    pub panics: u64,
    /// Whether the handler has returned from every event of the initial list.
    pub has_synced: bool,
}
