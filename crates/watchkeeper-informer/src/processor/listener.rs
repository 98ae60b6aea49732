//! The task of one handler.

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
    log::{ListenerId, Report, Unstarted, Work},
};
use crate::{
    event::Event,
    handler::{Callback, Handle},
    sync::AtomicBool,
};

/// How a call went: well, or what it panicked with.
type Called = Result<(), Box<dyn Any + Send>>;

/// Calls that count as one unit of the runtime's budget for a task that does not wait by itself. It hands out
/// 128 units at a time, so that a handler of a microsecond keeps a thread for one millisecond.
const CALLS_A_UNIT: usize = 8;

/// A handler to be run: [`run`](Self::run) gives it event after event.
///
/// Dropping it, run or not, removes the handler.
#[must_use = "a handler hears nothing until its task runs"]
pub struct ListenerTask<K: Resource> {
    name: Arc<str>,
    callback: Callback<K>,
    is_stopped: Arc<AtomicBool>,
    // Last, so that the handler is gone by the time it is said to be.
    place: Place<K>,
}

/// The listener's place in the log, given up when it is dropped.
struct Place<K: Resource> {
    shared: Arc<Shared<K>>,
    id: ListenerId,
}

impl<K: Resource + Send + Sync + 'static> ListenerTask<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, unstarted: Unstarted<K>) -> Self {
        let Unstarted { id, name, callback, is_stopped } = unstarted;
        Self { name, callback, is_stopped, place: Place { shared, id } }
    }

    /// Calls the handler until it is removed or the processor is shut down.
    pub async fn run(self) {
        self.place.shared.operate(|log, _| log.note_task(self.place.id, tokio::task::try_id()));
        let mut report = Report::default();
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

    async fn next_work(&self, report: Report) -> Work<K> {
        let mut report = Some(report);
        poll_fn(|context| {
            self.place.shared.operate(|log, after| {
                // Told once, however often it is woken for nothing.
                let report = report.take().unwrap_or_default();
                log.next_work(self.place.id, report, context.waker(), after)
            })
        })
        .await
    }

    /// Calls the handler for each of these, unless it is stopped first.
    async fn deliver_all(&self, events: &[Event<K>], report: &mut Report) {
        match &self.callback {
            Callback::Sync(handler) => {
                for events in events.chunks(CALLS_A_UNIT) {
                    // A handler that never waits must still let others run.
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

    fn note(&self, called: Called, event: &Event<K>, report: &mut Report) {
        report.delivered += 1;
        if let Err(panic) = called {
            report.panics += 1;
            error!(handler = %self.name, panic = message(&*panic), ?event, "handler panicked");
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

/// Calls a handler that may wait. Neither making its future nor polling it may panic through.
async fn call<K>(handler: &dyn Handle<K>, event: &Event<K>) -> Called {
    let mut handling = catch_unwind(AssertUnwindSafe(|| handler.handle(event.clone())))?;
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}

impl<K: Resource> Drop for Place<K> {
    fn drop(&mut self) {
        self.shared.operate(|log, after| log.finish(self.id, after));
    }
}

impl<K: Resource> fmt::Debug for ListenerTask<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerTask").field("name", &self.name).finish_non_exhaustive()
    }
}
