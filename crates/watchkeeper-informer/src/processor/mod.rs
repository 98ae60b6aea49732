//! From one stream of events to many handlers.

mod coalesced;
mod listener;
mod log;
mod options;
mod registration;
mod resync;
mod status;
mod turn;

use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use kube_core::Resource;
use tokio::task::JoinSet;

use self::log::{Aftermath, Log};
pub use self::{
    listener::ListenerTask, options::ListenerOptions, registration::Registration, status::ListenerStatus,
    turn::Turn,
};
use crate::sync::Mutex;

/// Tells handlers what happened: each of them everything, in order, one event at a time, at its own pace.
///
/// What it promises to each handler is written on [`Event`](crate::event::Event); what a slow one costs, on
/// [`ListenerOptions`]. Beyond that:
///
/// - **No handler waits for another**, and publishing waits for none.
/// - **No lock is held while a handler runs.** A handler may register and remove handlers, itself included.
/// - **A late handler misses nothing and hears nothing twice**: first what the cache holds, then what happens
///   next. See [`Turn`] for how.
/// - **A panic stays where it is.** It is counted, and the handler is given the next event.
/// - **Ending is complete.** After [`Registration::remove`] the handler is not called again, and after
///   [`run`](Self::run) returned none is.
///
/// How it works: events are published in batches to a log that all listeners share, and each listener is a
/// task that reads the log, by reference, from a place of its own. An event is stored once, however many
/// handlers there are, and a listener takes the lock once a batch.
///
/// A handle: clones share one processor.
pub struct Processor<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    log: Mutex<Log<K>>,
    turn: Mutex<()>,
    started_at: tokio::time::Instant,
}

/// The processor has been shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the handler was not added to the informer, because it has stopped already: add it to a new informer"
)]
#[non_exhaustive]
pub struct Stopped;

impl<K: Resource + Send + Sync + 'static> Processor<K> {
    /// A processor without handlers, for an informer that resyncs its handlers this often unless they say
    /// otherwise.
    ///
    /// With a period of zero nobody is ever resynced, whatever they say.
    #[expect(clippy::disallowed_methods, reason = "the origin of the time that the log is handed")]
    pub fn new(resync_period: Duration) -> Self {
        let log = Mutex::new(Log::new(resync_period));
        let started_at = tokio::time::Instant::now();
        Self { shared: Arc::new(Shared { log, turn: Mutex::new(()), started_at }) }
    }

    /// Waits for its turn to change what handlers know: to publish, or to add a handler.
    pub fn turn(&self) -> Turn<'_, K> {
        Turn::new(self, self.shared.turn.lock())
    }

    /// Runs the listeners, those there are and those to come, each in a task of its own, until
    /// [`shutdown`](Self::shutdown). Returns when all of them have ended.
    ///
    /// Dropping the future ends them too, but does not wait for the calls they are in.
    pub async fn run(&self) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                // New listeners come first only so that the order of starts does not depend on chance.
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

    /// Waits for a listener that nobody runs yet, to run it somewhere else than [`run`](Self::run) does: on
    /// another runtime, say. `None` after a shutdown.
    pub async fn accept(&self) -> Option<ListenerTask<K>> {
        let unstarted = poll_fn(|context| self.shared.log.lock().accept(context.waker())).await?;
        Some(ListenerTask::new(Arc::clone(&self.shared), unstarted))
    }

    /// Stops all handlers, for ever. What they have not been told, they are not told any more; a call that is
    /// running is not interrupted. [`run`](Self::run) returns when the last of them has returned.
    pub fn shutdown(&self) {
        self.shared.operate(Log::shut_down);
    }

    /// Marks the handlers whose resync is due, so that the next events for
    /// [`Audience::Resyncing`](crate::transition::Audience::Resyncing) go to them and nobody else. True if
    /// there are any: then the cache is to be resynced.
    ///
    /// A handler's period is at least a second and at least the [check period](Self::fix_check_period).
    pub fn mark_due(&self) -> bool {
        let now = self.shared.now();
        self.shared.operate(|log, _| log.mark_due(now))
    }

    /// How often [`mark_due`](Self::mark_due) has to be called, for as long as it is not
    /// [fixed](Self::fix_check_period): the shortest period of any handler, or zero for never.
    pub fn check_period(&self) -> Duration {
        self.shared.operate(|log, _| log.check_period().get())
    }

    /// How often [`mark_due`](Self::mark_due) has to be called from now on: handlers that want to be resynced
    /// more often have to make do with this. For whoever starts the timer.
    pub fn fix_check_period(&self) -> Duration {
        self.shared.operate(|log, _| log.check_period().fix())
    }

    /// Handlers there are, those included whose last call has not returned.
    pub fn listener_count(&self) -> usize {
        self.shared.log.lock().listener_count()
    }
}

impl<K: Resource> Shared<K> {
    /// Runs one step of the state machine under the lock, then does what must be done without it.
    fn operate<R>(&self, step: impl FnOnce(&mut Log<K>, &mut Aftermath<K>) -> R) -> R {
        let mut after = Aftermath::new();
        let result = step(&mut self.log.lock(), &mut after);
        after.settle();
        result
    }

    /// The time since the processor was made.
    fn now(&self) -> Duration {
        self.started_at.elapsed()
    }
}

/// Handlers' panics are caught one by one, so a task that ended in one did so in our code.
fn report(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a handler ended unexpectedly");
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
