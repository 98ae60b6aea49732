//! A queue of keys for level-triggered work: each key is handed to one worker at a time, and never forgotten.
//!
//! What is queued is a **key** ("default/web": look at this again), not an event. Adding a key that is already
//! in line changes nothing; adding one that is being worked on has it worked on once more. So any number of
//! events cost no more than one look at the current state, and a slow worker never falls behind by more than the
//! number of keys there are.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! use std::{sync::Arc, time::Duration};
//! use watchkeeper_workqueue::{AddOptions, Cause, WorkQueue};
//!
//! let queue: WorkQueue<Arc<str>> = WorkQueue::new("pods");
//! queue.add("default/web".into());
//! queue.add_with("default/web".into(), AddOptions::new().cause(Cause::Event("Pod".into())));
//! queue.add_after("default/db".into(), Duration::from_secs(30));
//!
//! // A worker. A queue can have many of them, each in a task of its own.
//! let mut worker = queue.worker();
//! let mut tries = 0;
//! while let Some(item) = worker.next().await {
//!     tries += 1;
//!     match (item.key().as_ref(), item.failures()) {
//!         ("default/web", 0) => _ = item.retry(), // failed: comes back after its backoff
//!         ("default/web", _) => item.forget(),    // worked: its failures are forgotten
//!         _ => {
//!             item.forget();
//!             queue.shutdown();                   // ends every worker once nothing is left
//!         }
//!     }
//! }
//! assert_eq!(tries, 3);
//! # });
//! ```
//!
//! # What it promises
//!
//! 1. **One worker a key.** A key is never handed out twice at the same time.
//! 2. **Nothing is lost.** Each accepted add leads to a hand-out that begins after it, unless the queue is shut
//!    down or the add is cancelled.
//! 3. **Adds merge.** A key that is in line is in line once, at the place of its first add.
//! 4. **Added while processed: once more.** Any number of adds during the work on a key lead to one more
//!    hand-out, after that work ends.
//! 5. **Finishing is exact.** An [`Item`] finishes its key once, when it says how it went or is dropped; one of a
//!    [`Worker`] at the latest with that worker's next step. A stale or repeated [`ItemToken`] does nothing.
//! 6. **Delays are never early.** A delayed key is handed out at its time or after it, as soon as a worker is free
//!    and the clock's wait has ended (with [`TokioClock`], in about half a millisecond). Of several delays of one key the earliest
//!    counts, and an add that is due now takes a scheduled copy with it: a key has one pending hand-out, not two.
//! 7. **Backoff is bounded and fair.** Failures are counted beside the key and forgotten with it, so they cannot
//!    outgrow the live keys. An event-driven add of a key that backs off neither shortens its backoff nor counts
//!    as a failure.
//! 8. **Shutdown ends.** After [`WorkQueue::shutdown`] adds are refused, and say so; what is due is still handed
//!    out; then every waiting `get` returns `None`. [`WorkQueue::drain`] returns when nothing is queued, dirty or
//!    being processed, or at its deadline, and says which. Keys whose delay has not run out are dropped at
//!    shutdown and returned to the caller.
//! 9. **Priority does not starve.** Higher first, in order of arrival within one priority. A priority that was
//!    left aside [`patience`](WorkQueueBuilder::patience) times goes first: with `L` priorities waiting, each is
//!    served at least once in `patience + L` hand-outs.
//! 10. **A panic is a failure.** An [`Item`] dropped by a panic is retried after its backoff, not lost.
//!
//! What it does not promise: an order between keys that became due at the same time from different threads; that
//! every add is seen as a hand-out of its own; that an add which was [posted](Admission::Posted) while the key was
//! in line merges with it: if the key is handed out just then, it may be handed out once more; anything after the
//! process ends. It is in memory: after a restart a controller's first list fills it again.
//!
//! # Coming from client-go
//!
//! One type does what `Typed`, `TypedDelayingQueue` and `TypedRateLimitingQueue` do; [`DelayingQueue`] and
//! [`RateLimitingQueue`] are other names for it. It differs on purpose:
//!
//! | | client-go | here |
//! |---|---|---|
//! | `Done` | called by hand; a stray one can queue a key twice | a guard; stray tokens do nothing |
//! | delayed and then added directly | processed twice | once |
//! | cancel or postpone a delay | no | [`WorkQueue::cancel`], [`WorkQueue::postpone`] |
//! | an event during backoff | jumps the backoff, and the next failure doubles it | waits with it ([`AddOptions::immediately`] jumps) |
//! | failures of a key never forgotten by hand | stay in memory | go with the key |
//! | drain | returns while keys are still queued | returns when there are none, or at a deadline |
//! | `ShutDown` during a drain | releases the drain | does not; drop the drain's future instead |
//! | priority, causes | no | yes |
//! | a key the caller keeps | copied | [`WorkQueue::add_ref`] clones it only if it is new |
//! | `Touch` on a merged add | called on a pluggable queue | the merged add's priority and cause count |
//!
//! # Inside
//!
//! `core` is a state machine without locks, clocks or tasks: a slab with a slot a key, a hash table of slot numbers, an
//! intrusive list for each priority, delays in order of time. This crate's types are a thin shell around it: one mutex, an inbox
//! for adds that find it taken, and a list of waiting `get`s of which one watches the clock, so that there is no
//! background task to start, stop or leak.

mod alarm;
mod builder;
mod cause;
mod clock;
mod core;
mod drain;
mod fill;
mod get;
mod inbox;
mod item;
pub mod limiter;
mod metrics;
mod options;
mod parallelize;
mod priority;
mod queue;
mod sync;
mod waiters;
mod worker;

#[cfg(feature = "prometheus")]
pub mod prometheus;

pub use self::{
    builder::WorkQueueBuilder,
    cause::{Cause, Causes},
    clock::{Clock, ManualClock, Sleep, TokioClock},
    drain::Drained,
    get::Get,
    item::{Item, ItemToken},
    limiter::RateLimiter,
    metrics::{Metrics, Running, RunningWork},
    options::{AddOptions, Admission},
    parallelize::parallelize_until,
    priority::Priority,
    queue::{Key, WorkQueue},
    worker::{Next, Worker},
};

/// [`WorkQueue`], by the name client-go gives its queue with delays.
pub type DelayingQueue<K> = WorkQueue<K>;

/// [`WorkQueue`], by the name client-go gives its queue with rate limits.
pub type RateLimitingQueue<K> = WorkQueue<K>;
