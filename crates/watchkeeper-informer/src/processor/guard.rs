//! The lock that serializes publishing events and adding handlers.

use std::{fmt, sync::Arc};

use kube_core::Resource;

use super::{
    HandlerOptions, Processor, Registration, Stopped,
    log::{Draft, Log, NewListener},
};
use crate::{
    Cached,
    handler::{AsyncEventHandler, Callback, EventHandler},
    sync::MutexGuard,
    transition::Notification,
};

/// The exclusive right to publish events and to add handlers.
///
/// The guard makes sure that a late handler receives every event exactly once. The writer of the cache holds
/// the guard while it changes the cache and publishes the change. A caller that adds a handler holds the
/// guard while it takes a snapshot of the cache and adds the handler with that snapshot. Therefore no change
/// is in the cache but not in the log, or in the log but not in the cache, when a handler is added.
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::Pod;
/// # use watchkeeper_informer::{Cached, event::Event, handler::{HandlerOptions, Stopped}, internals::{Notification, Processor}};
/// # fn apply() -> Vec<Notification<Pod>> { Vec::new() }
/// # fn snapshot() -> Vec<Cached<Pod>> { Vec::new() }
/// let processor = Processor::<Pod>::new(Duration::ZERO);
///
/// // The writer of the cache:
/// let mut guard = processor.lock();
/// let notifications = apply(); // to the cache
/// guard.publish(notifications);
/// drop(guard);
///
/// // A caller that adds a handler:
/// let mut guard = processor.lock();
/// let handler = |event: &Event<Pod>| println!("{event:?}");
/// let registration = guard.add(handler, HandlerOptions::new("printer"), Some(snapshot()))?;
/// # Ok::<(), Stopped>(())
/// ```
///
/// The guard is a lock guard and cannot be held across an await. Run user code (index functions, transforms)
/// before acquiring it. Handlers never run under it.
#[must_use = "a guard that is dropped immediately publishes nothing"]
pub struct ProcessorGuard<'a, K> {
    processor: &'a Processor<K>,
    _held: MutexGuard<'a, ()>,
}

impl<'a, K: Resource + Send + Sync + 'static> ProcessorGuard<'a, K> {
    pub(super) fn new(processor: &'a Processor<K>, held: MutexGuard<'a, ()>) -> Self {
        Self { processor, _held: held }
    }

    /// Publishes events in this order. The cache must already contain the changes.
    pub fn publish(&mut self, notifications: impl IntoIterator<Item = Notification<K>>) {
        let shared = &self.processor.shared;
        let now = shared.now();
        for draft in Draft::cut(notifications.into_iter()) {
            shared.operate(|log, deferred| log.publish(draft, now, deferred));
        }
    }

    /// Marks the end of the initial list: everything of it has been published. A handler is synced when it
    /// has returned from all of these events.
    pub fn mark_synced(&mut self) {
        self.processor.shared.operate(Log::mark_synced);
    }

    /// Adds a handler. It is called with an initial `Added` for each object of `snapshot`, the current
    /// contents of the cache, and then with every event that is published later.
    ///
    /// A handler that is added several times is called once for each registration.
    ///
    /// # Errors
    /// Returns [`Stopped`] if the processor was shut down.
    pub fn add<S>(
        &mut self,
        handler: impl EventHandler<K>,
        options: HandlerOptions,
        snapshot: Option<S>,
    ) -> Result<Registration<K>, Stopped>
    where
        S: IntoIterator<Item = Cached<K>>,
        S::IntoIter: Send + 'static,
    {
        self.add_callback(Callback::Sync(Box::new(handler)), options, snapshot)
    }

    /// Adds an asynchronous handler; see [`add`](Self::add).
    ///
    /// # Errors
    /// Returns [`Stopped`] if the processor was shut down.
    pub fn add_async<S>(
        &mut self,
        handler: impl AsyncEventHandler<K>,
        options: HandlerOptions,
        snapshot: Option<S>,
    ) -> Result<Registration<K>, Stopped>
    where
        S: IntoIterator<Item = Cached<K>>,
        S::IntoIter: Send + 'static,
    {
        self.add_callback(Callback::Async(Box::new(handler)), options, snapshot)
    }

    fn add_callback<S>(
        &mut self,
        callback: Callback<K>,
        options: HandlerOptions,
        snapshot: Option<S>,
    ) -> Result<Registration<K>, Stopped>
    where
        S: IntoIterator<Item = Cached<K>>,
        S::IntoIter: Send + 'static,
    {
        let initial = snapshot.map(|snapshot| Box::new(snapshot.into_iter()) as _);
        let new = NewListener { callback, options, initial };
        let shared = &self.processor.shared;
        let now = shared.now();
        let id = shared.operate(|log, deferred| log.add(new, now, deferred)).ok_or(Stopped)?;
        Ok(Registration::new(Arc::clone(shared), id))
    }
}

impl<K> fmt::Debug for ProcessorGuard<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessorGuard").finish_non_exhaustive()
    }
}
