//! The task of one listener.

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    task::Poll,
};

use kube_core::Resource;
use tracing::error;

use super::{
    Shared,
    log::{CallReport, ListenerId, UnstartedListener, Work},
};
use crate::{
    event::Event,
    handler::{Callback, ErasedAsyncHandler},
    panic,
    sync::AtomicBool,
};

/// The result of a call: `Err` with the payload of a panic.
type Called = Result<(), Box<dyn Any + Send>>;

/// The number of calls that count as one unit of the tokio task budget, for handlers that do not yield by
/// themselves. The budget has 128 units, so that a handler that takes a microsecond occupies a thread for a
/// millisecond.
const CALLS_PER_UNIT: usize = 8;

/// The task of a handler. [`run`](Self::run) calls the handler with one event after the other.
///
/// Dropping the task removes the handler.
#[must_use = "a handler is not called until its task runs"]
pub struct ListenerTask<K: Resource> {
    name: Arc<str>,
    callback: Callback<K>,
    is_stopped: Arc<AtomicBool>,
    // The last field, so that the handler is dropped before it is reported as removed.
    slot: ListenerSlot<K>,
}

/// A listener in the log, removed from it on drop.
struct ListenerSlot<K: Resource> {
    shared: Arc<Shared<K>>,
    id: ListenerId,
}

impl<K: Resource + Send + Sync + 'static> ListenerTask<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, unstarted: UnstartedListener<K>) -> Self {
        let UnstartedListener { id, name, callback, is_stopped } = unstarted;
        Self { name, callback, is_stopped, slot: ListenerSlot { shared, id } }
    }

    /// Calls the handler until it is removed or the processor is shut down.
    pub async fn run(self) {
        self.slot.shared.operate(|log, _| log.note_task(self.slot.id, tokio::task::try_id()));
        let mut report = CallReport::default();
        loop {
            match self.next_work(std::mem::take(&mut report)).await {
                Work::Stop => return,
                Work::Initial(objects) => {
                    for object in objects {
                        if self.is_stopped() {
                            return;
                        }
                        self.deliver_all(&[Event::Added { object, is_initial: true }], &mut report).await;
                    }
                }
                Work::Batch(batch) => self.deliver_all(&batch.events, &mut report).await,
                Work::Backlog(events) => self.deliver_all(&events, &mut report).await,
            }
        }
    }

    async fn next_work(&self, report: CallReport) -> Work<K> {
        let mut report = Some(report);
        poll_fn(|context| {
            self.slot.shared.operate(|log, deferred| {
                // Reported once, however many spurious wake-ups follow.
                let report = report.take().unwrap_or_default();
                log.next_work(self.slot.id, report, context.waker(), deferred)
            })
        })
        .await
    }

    /// Calls the handler with each event, unless the listener is stopped first.
    async fn deliver_all(&self, events: &[Event<K>], report: &mut CallReport) {
        match &self.callback {
            Callback::Sync(handler) => {
                for events in events.chunks(CALLS_PER_UNIT) {
                    // A handler that never yields must not starve other tasks.
                    tokio::task::coop::consume_budget().await;
                    for event in events {
                        if self.is_stopped() {
                            return;
                        }
                        let called = catch_unwind(AssertUnwindSafe(|| handler.handle(event)));
                        self.note(called, event, report);
                    }
                }
            }
            Callback::Async(handler) => {
                for event in events {
                    if self.is_stopped() {
                        return;
                    }
                    self.note(call(&**handler, event).await, event, report);
                }
            }
        }
    }

    fn note(&self, called: Called, event: &Event<K>, report: &mut CallReport) {
        report.delivered += 1;
        if let Err(payload) = called {
            report.panics += 1;
            error!(handler = %self.name, panic = panic::message(&*payload), ?event, "handler panicked");
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

/// Calls an asynchronous handler. Catches panics of both the creation and the polling of its future.
async fn call<K>(handler: &dyn ErasedAsyncHandler<K>, event: &Event<K>) -> Called {
    let mut handling = catch_unwind(AssertUnwindSafe(|| handler.handle(event.clone())))?;
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    })
    .await
}

impl<K: Resource> Drop for ListenerSlot<K> {
    fn drop(&mut self) {
        self.shared.operate(|log, deferred| log.finish(self.id, deferred));
    }
}

impl<K: Resource> fmt::Debug for ListenerTask<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerTask").field("name", &self.name).finish_non_exhaustive()
    }
}
