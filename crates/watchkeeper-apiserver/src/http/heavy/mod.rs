//! Isolation of CPU-heavy requests.
//!
//! Most requests take microseconds and run on the task of their connection. A request that may take longer, judged by the
//! size of its input, runs on a thread for heavy requests. The number of such threads is limited, so that the remaining
//! cores serve the others.

mod threads;

use std::{panic, sync::Arc, thread::available_parallelism};

use parking_lot::Mutex;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
};

use self::threads::Threads;
use super::{negotiate::Media, verb::Verb};
use crate::{
    rest::{Request, represent::ObjectForm, table_of},
    status::{ApiError, Details},
    storage::Storage,
};

/// The maximum work of a request that runs inline, in bytes of JSON that are parsed, checked and written.
const LIGHT_WORK: usize = 64 * 1024;
/// The work of evaluating a selector for one object, besides the length of the selector.
const SELECT_WORK: usize = 16;
/// The work of one object of a list that is converted before it is sent, or that is deleted.
const OBJECT_WORK: usize = 512;

/// The maximum number of admitted heavy requests, running and waiting.
const MAX_ADMITTED: usize = 512;
/// The maximum total size of the bodies of all admitted heavy requests, in bytes.
const MAX_ADMITTED_BYTES: usize = 64 * 1024 * 1024;

/// The queue of heavy requests: first come, first served.
#[derive(Debug)]
pub(super) struct HeavyQueue {
    slots: Arc<Semaphore>,
    admitted: Arc<Mutex<Admitted>>,
    threads: Arc<Threads>,
    /// Whether heavy requests run inline on a current-thread runtime, so that the order of everything is reproducible.
    is_deterministic: bool,
}

#[derive(Debug, Default)]
struct Admitted {
    requests: usize,
    bytes: usize,
}

/// The slot of a heavy request in the queue; released on drop.
#[derive(Debug)]
struct QueueSlot {
    admitted: Arc<Mutex<Admitted>>,
    bytes: usize,
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut admitted = self.admitted.lock();
        admitted.requests = admitted.requests.saturating_sub(1);
        admitted.bytes = admitted.bytes.saturating_sub(self.bytes);
    }
}

impl HeavyQueue {
    /// Creates a queue that leaves one core for other requests. With `is_deterministic`, a current-thread runtime runs
    /// heavy requests inline.
    pub(super) fn new(is_deterministic: bool) -> Self {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with_slots(cores.saturating_sub(1).max(1), is_deterministic)
    }

    fn with_slots(slots: usize, is_deterministic: bool) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            admitted: Arc::default(),
            threads: Arc::new(Threads::new(slots)),
            is_deterministic,
        }
    }

    /// Returns the runtime that heavy requests use on their threads; `None` if they run inline.
    pub(super) fn runtime(&self) -> Option<Handle> {
        let handle = Handle::try_current().ok()?;
        let is_inline = self.is_deterministic && handle.runtime_flavor() == RuntimeFlavor::CurrentThread;
        (!is_inline).then_some(handle)
    }

    /// Runs `work` on a thread for heavy requests as soon as a slot is free. `bytes` is the memory that the work holds while
    /// it waits.
    ///
    /// # Errors
    /// 429 if too many requests, or requests of too many bytes, are waiting; 500 if no thread can be started.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let queue_slot = self.admit(bytes)?;
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|_| ApiError::internal("the queue of heavy requests is closed"))?;
        let threads = Arc::clone(&self.threads);
        // Run as a blocking task, so that the runtime waits for the thread and paused time does not advance meanwhile.
        let running = tokio::task::spawn_blocking(move || {
            let _held = (queue_slot, slot);
            threads.run(work)
        });
        match running.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done.map_err(|error| ApiError::internal(error.to_string())),
            Err(Ok(panic)) => panic::resume_unwind(panic),
            Err(Err(_)) => Err(ApiError::internal("the server is shutting down")),
        }
    }

    fn admit(&self, bytes: usize) -> Result<QueueSlot, ApiError> {
        let mut admitted = self.admitted.lock();
        let is_full = admitted.requests >= MAX_ADMITTED
            // A single request is admitted whatever its size, because the limit on bodies bounds it.
            || admitted.requests > 0 && admitted.bytes.saturating_add(bytes) > MAX_ADMITTED_BYTES;
        if is_full {
            return Err(too_many_requests());
        }
        admitted.requests += 1;
        admitted.bytes += bytes;
        Ok(QueueSlot { admitted: Arc::clone(&self.admitted), bytes })
    }
}

fn too_many_requests() -> ApiError {
    let details = Details { retry_after_seconds: Some(1), ..Details::default() };
    ApiError::new(429, "TooManyRequests", "too many large requests are waiting, please try again later")
        .with_details(details)
}

/// Returns whether a request may take too much CPU time to run inline. The estimate is cheap and available up front: the
/// sizes of the body, of the stored object, of the selectors and of the collection.
pub(super) fn is_heavy(
    store: &dyn Storage,
    verb: Verb,
    request: &Request,
    media: Media,
    is_pretty: bool,
) -> bool {
    let body = request.body.len();
    if body > LIGHT_WORK {
        return true;
    }
    let kind = &request.kind;
    let is_definition = kind.gvk.kind == "CustomResourceDefinition";
    // The cost of CEL rules and of compiling schemas does not follow from the size of the request.
    if verb.writes() && (is_definition || kind.custom.as_ref().is_some_and(|custom| custom.has_rules)) {
        return true;
    }
    let is_stored_form = media == Media::Json && !is_pretty && request.form == ObjectForm::Plain;
    let stored = || store.get(&request.table(), &request.key()).map_or(0, |object| object.content.len());
    let work = match verb {
        Verb::Create => body,
        Verb::Update | Verb::Patch | Verb::Delete => body + stored(),
        Verb::Get if is_stored_form => 0,
        Verb::Get => stored(),
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            let length = |name: &str| request.parameters.text(name).map_or(0, str::len);
            let selectors = length("labelSelector") + length("fieldSelector");
            let is_each_converted = verb == Verb::DeleteCollection || verb == Verb::List && !is_stored_form;
            let per_object = if selectors > 0 { SELECT_WORK + selectors } else { 0 }
                + if is_each_converted { OBJECT_WORK } else { 0 };
            let count = if per_object == 0 { 0 } else { store.count(&table_of(kind)) };
            body.saturating_add(selectors).saturating_add(per_object.saturating_mul(count))
        }
    };
    work > LIGHT_WORK
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{super::deadline, *};
    use crate::TokioClock;

    #[tokio::test]
    async fn a_full_queue_rejects_with_429_and_retry_after_and_drains() {
        let queue = HeavyQueue::new(false);
        let first = queue.admit(MAX_ADMITTED_BYTES + 1).expect("a request alone is admitted");
        let error = queue.admit(1).expect_err("the queue is full");
        assert_eq!((error.code, error.reason), (429, "TooManyRequests"));
        assert_eq!(error.details.and_then(|details| details.retry_after_seconds), Some(1));
        drop(first);
        let queue_slots: Vec<_> = (0..MAX_ADMITTED).map(|_| queue.admit(0).expect("a place")).collect();
        assert_eq!(queue.admit(0).expect_err("too many").code, 429);
        drop(queue_slots);
        assert_eq!(queue.run(0, || 5).await, Ok(5));
        assert_eq!(queue.admitted.lock().requests, 0);
    }

    #[tokio::test]
    async fn other_tasks_run_while_heavy_work_blocks_its_thread() {
        let queue = HeavyQueue::new(false);
        let (release, held) = mpsc::channel::<()>();
        let heavy = queue.run(0, move || held.recv().is_ok());
        let other = async {
            tokio::task::yield_now().await;
            release.send(()).expect("the heavy work waits");
        };
        // On a current-thread runtime this would never end if the work ran on the task.
        assert_eq!(tokio::join!(heavy, other).0, Ok(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_for_a_slot_ends_at_its_deadline() {
        let (queue, clock) = (HeavyQueue::with_slots(1, false), TokioClock::new());
        let (release, held) = mpsc::channel::<()>();
        let running = queue.run(1, move || held.recv().is_ok());
        let waiting = deadline::within(&clock, deadline::REQUEST_TIMEOUT, queue.run(1, || ()));
        let time = async {
            // Paused time advances automatically only while no blocking thread works.
            tokio::time::advance(deadline::REQUEST_TIMEOUT).await;
            tokio::task::yield_now().await;
            release.send(()).expect("the first request runs");
        };
        let (running, waiting, ()) = tokio::join!(running, waiting, time);
        assert_eq!((running, waiting), (Ok(true), None));
        assert_eq!(queue.admitted.lock().requests, 0);
    }

    #[tokio::test]
    async fn a_seeded_server_on_one_thread_runs_everything_inline() {
        assert!(HeavyQueue::new(true).runtime().is_none());
        assert!(HeavyQueue::new(false).runtime().is_some());
    }
}
