//! Changing what handlers know.

use std::{fmt, sync::Arc};

use kube_core::Resource;

use super::{
    ListenerOptions, Processor, Registration, Stopped,
    log::{Draft, Log, NewMember},
};
use crate::{
    handler::{AsyncEventHandler, Callback, EventHandler},
    sync::MutexGuard,
    transition::Notice,
};

/// The right to publish and to add handlers, held by one at a time.
///
/// This is how a late handler hears everything exactly once. Whoever changes the cache takes a turn, changes
/// the cache, and publishes what it did, all in that turn; whoever adds a handler takes a turn, reads the
/// cache, and adds the handler with what it read. No change can be in the cache and not yet in the log, or
/// the other way round, when a handler is added.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use k8s_openapi::api::core::v1::Pod;
/// # use watchkeeper_informer::{event::Event, processor::{ListenerOptions, Processor}, transition::Notice};
/// # fn apply() -> Vec<Notice<Pod>> { Vec::new() }
/// # fn snapshot() -> Vec<Arc<Pod>> { Vec::new() }
/// let processor = Processor::<Pod>::new(Duration::ZERO);
///
/// // The one that applies changes:
/// let mut turn = processor.turn();
/// let notices = apply();               // to the cache
/// turn.publish(notices);
/// drop(turn);
///
/// // The one that adds a handler:
/// let mut turn = processor.turn();
/// let handler = |event: &Event<Pod>| println!("{event:?}");
/// let registration = turn.add(handler, ListenerOptions::new("printer"), Some(snapshot()))?;
/// # Ok::<(), watchkeeper_informer::processor::Stopped>(())
/// ```
///
/// It is a lock, and it cannot be held across an await. Code of the user's (index functions, transforms) is
/// to be run before it is taken. Handlers never run under it.
#[must_use = "a turn that is dropped at once changes nothing"]
pub struct Turn<'a, K> {
    processor: &'a Processor<K>,
    _held: MutexGuard<'a, ()>,
}

impl<'a, K: Resource + Send + Sync + 'static> Turn<'a, K> {
    pub(super) fn new(processor: &'a Processor<K>, held: MutexGuard<'a, ()>) -> Self {
        Self { processor, _held: held }
    }

    /// Tells handlers of what happened, in this order. The cache must hold it already.
    pub fn publish(&mut self, notices: impl IntoIterator<Item = Notice<K>>) {
        let shared = &self.processor.shared;
        let now = shared.now();
        for draft in Draft::cut(notices.into_iter()) {
            shared.operate(|log, after| log.publish(draft, now, after));
        }
    }

    /// Says that everything of the first list has been published: a handler is in sync when it has returned
    /// from all of that.
    pub fn mark_synced(&mut self) {
        self.processor.shared.operate(Log::mark_synced);
    }

    /// Adds a handler. It hears of each object of `snapshot`, which is what the cache holds, as an initial
    /// `Added`, and then of everything that is published after this.
    ///
    /// The same handler may be added several times; each time it is another one.
    ///
    /// # Errors
    /// When the processor has been shut down.
    pub fn add<S>(
        &mut self,
        handler: impl EventHandler<K>,
        options: ListenerOptions,
        snapshot: Option<S>,
    ) -> Result<Registration<K>, Stopped>
    where
        S: IntoIterator<Item = Arc<K>>,
        S::IntoIter: Send + 'static,
    {
        self.add_callback(Callback::Sync(Box::new(handler)), options, snapshot)
    }

    /// Adds a handler that may wait, see [`add`](Self::add).
    ///
    /// # Errors
    /// When the processor has been shut down.
    pub fn add_async<S>(
        &mut self,
        handler: impl AsyncEventHandler<K>,
        options: ListenerOptions,
        snapshot: Option<S>,
    ) -> Result<Registration<K>, Stopped>
    where
        S: IntoIterator<Item = Arc<K>>,
        S::IntoIter: Send + 'static,
    {
        self.add_callback(Callback::Async(Box::new(handler)), options, snapshot)
    }

    fn add_callback<S>(
        &mut self,
        callback: Callback<K>,
        options: ListenerOptions,
        snapshot: Option<S>,
    ) -> Result<Registration<K>, Stopped>
    where
        S: IntoIterator<Item = Arc<K>>,
        S::IntoIter: Send + 'static,
    {
        let initial = snapshot.map(|snapshot| Box::new(snapshot.into_iter()) as _);
        let new = NewMember { callback, options, initial };
        let shared = &self.processor.shared;
        let now = shared.now();
        let id = shared.operate(|log, after| log.add(new, now, after)).ok_or(Stopped)?;
        Ok(Registration::new(Arc::clone(shared), id))
    }
}

impl<K> fmt::Debug for Turn<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}
