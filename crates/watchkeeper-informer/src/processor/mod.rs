//! Delivery of events to handlers.

mod backlog;
mod guard;
mod listener;
mod log;
mod options;
mod registration;
mod resync;

use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use kube_core::Resource;
use tokio::task::JoinSet;
use watchkeeper_time::{Clock as _, TokioClock};

use self::log::{Deferred, Log};
pub use self::{
    guard::ProcessorGuard,
    listener::ListenerTask,
    options::HandlerOptions,
    registration::{HandlerStatus, Registration},
};
use crate::sync::Mutex;

/// The component that delivers events to handlers: each handler is called with every event, in order, one at a
/// time, and independently of other handlers.
///
/// [`Event`](crate::event::Event) documents the guarantees for one handler, and [`HandlerOptions`] the cost
/// of a slow handler. In addition:
///
/// - **Handlers are independent.** No handler waits for another one, and publishing waits for no handler.
/// - **No lock is held while a handler runs.** A handler may add and remove handlers, including itself.
/// - **A handler that is added late receives every event exactly once**: an `Added` for each cached object,
///   then all later events. See [`ProcessorGuard`].
/// - **Panics are contained.** A panic is counted, and the handler is called with the next event.
/// - **Removal is complete.** A handler is not called after [`Registration::remove`] returned, and no handler
///   is called after [`run`](Self::run) returned.
///
/// Events are published in batches to a log that all listeners share. Each listener is a task with its own
/// position in the log, from which it reads by reference. An event is stored once for any number of handlers,
/// and a listener takes the lock once for each batch.
///
/// A processor is a handle; clones share one processor.
pub struct Processor<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    log: Mutex<Log<K>>,
    guard: Mutex<()>,
    clock: TokioClock,
}

/// The error returned when a handler is added to an informer that was stopped.
///
/// A stopped informer cannot be restarted. Create a new informer, and add the handler to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("add a handler: the informer was stopped; add the handler to a new informer")]
#[non_exhaustive]
pub struct Stopped;

impl<K: Resource + Send + Sync + 'static> Processor<K> {
    /// Creates a processor without handlers. `resync_period` is the default resync period of its handlers.
    ///
    /// With a period of zero, no handler is resynced, whatever its own options are.
    pub fn new(resync_period: Duration) -> Self {
        let log = Mutex::new(Log::new(resync_period));
        Self { shared: Arc::new(Shared { log, guard: Mutex::new(()), clock: TokioClock::new() }) }
    }

    /// Acquires the lock that serializes publishing events and adding handlers.
    pub fn lock(&self) -> ProcessorGuard<'_, K> {
        ProcessorGuard::new(self, self.shared.guard.lock())
    }

    /// Runs each current and future listener in its own task until [`shutdown`](Self::shutdown), and returns
    /// when all of them have ended.
    ///
    /// Dropping the future also ends the tasks, without waiting for running calls.
    pub async fn run(&self) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                // New listeners first, so that the order of starts is deterministic.
                biased;
                task = self.accept() => match task {
                    Some(task) => _ = tasks.spawn(task.run()),
                    None => break,
                },
                Some(ended) = tasks.join_next() => report(&ended),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report(&ended);
        }
    }

    /// Waits for a listener that is not running, to run it elsewhere than in [`run`](Self::run). Returns
    /// `None` after a shutdown.
    pub async fn accept(&self) -> Option<ListenerTask<K>> {
        let unstarted = poll_fn(|context| self.shared.log.lock().accept(context.waker())).await?;
        Some(ListenerTask::new(Arc::clone(&self.shared), unstarted))
    }

    /// Stops all handlers permanently. Pending events are not delivered, and running calls are not
    /// interrupted. [`run`](Self::run) returns when the last of these calls has returned.
    pub fn shutdown(&self) {
        self.shared.operate(Log::shut_down);
    }

    /// Marks the handlers whose resync is due. The next events for
    /// [`Audience::Resyncing`](crate::transition::Audience::Resyncing) are delivered to them only. Returns
    /// whether any handler is due, so that the cache has to be resynced.
    ///
    /// The resync period of a handler is at least one second and at least the [check
    /// period](Self::fix_check_period).
    pub fn mark_due(&self) -> bool {
        let now = self.shared.now();
        self.shared.operate(|log, _| log.mark_due(now))
    }

    /// Returns the interval at which [`mark_due`](Self::mark_due) has to be called, until it is
    /// [fixed](Self::fix_check_period): the shortest period of any handler, or zero for never.
    pub fn check_period(&self) -> Duration {
        self.shared.operate(|log, _| log.check_period().get())
    }

    /// Fixes the interval at which [`mark_due`](Self::mark_due) is called, and returns it. Handlers that are
    /// added later with a shorter period are resynced at this interval.
    pub fn fix_check_period(&self) -> Duration {
        self.shared.operate(|log, _| log.check_period().fix())
    }

    /// Returns the number of handlers, including removed ones whose last call has not returned.
    pub fn listener_count(&self) -> usize {
        self.shared.log.lock().listener_count()
    }
}

impl<K: Resource> Shared<K> {
    /// Runs one step of the state machine under the lock, then its deferred effects without the lock.
    fn operate<R>(&self, step: impl FnOnce(&mut Log<K>, &mut Deferred<K>) -> R) -> R {
        let mut deferred = Deferred::new();
        let result = step(&mut self.log.lock(), &mut deferred);
        deferred.run();
        result
    }

    /// Returns the time since the processor was created.
    fn now(&self) -> Duration {
        self.clock.now()
    }
}

/// Logs a task that ended with a panic. Panics of handlers are caught, so this one is a bug in the processor.
fn report(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "handler task ended unexpectedly");
    }
}

impl<K> Clone for Processor<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource + Send + Sync + 'static> fmt::Debug for Processor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processor").field("listeners", &self.listener_count()).finish_non_exhaustive()
    }
}
