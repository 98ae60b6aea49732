//! A queue of keys for level-triggered work: de-duplicating, delaying, rate limiting, with priorities and causes.
//!
//! The queue contains **keys** such as `default/web`, not events. Adding a queued key has no effect; adding a key that is being
//! processed queues it once more. Any number of events of an object therefore leads to one run on its current state, and a slow
//! worker is never behind by more than the number of keys.
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
//! // A worker. A queue can have many, each in a task of its own.
//! let mut runs = 0;
//! while let Some(item) = queue.get().await {
//!     runs += 1;
//!     match (item.key().as_ref(), item.failures()) {
//!         ("default/web", 0) => _ = item.retry(), // failed: queued again after its backoff
//!         ("default/web", _) => item.forget(),    // succeeded: the failure count is reset
//!         _ => {
//!             item.forget();
//!             queue.shutdown();                   // ends every worker after the last key
//!         }
//!     }
//! }
//! assert_eq!(runs, 3);
//! # });
//! ```
//!
//! # Guarantees
//!
//! 1. **One worker per key.** A key is never processed by two workers at the same time.
//! 2. **No lost keys.** Each accepted add is followed by a run that begins after the add, unless the queue is shut down or the add is
//!    cancelled.
//! 3. **Adds merge.** A queued key is queued once. It keeps its place, unless an add raises its priority: then it is queued behind the
//!    keys of that priority, as in controller-runtime.
//! 4. **Adds during a run lead to one more run,** however many they are, after the present run ends.
//! 5. **A run is finished exactly once,** when its [`Item`] is consumed or dropped.
//! 6. **Delays never end early.** A delayed key is dequeued at its time or later, as soon as a worker is free and the timer of the clock
//!    has ended (with [`TokioClock`], after one or two milliseconds). Of several delays of one key the earliest counts, and an add without
//!    a delay ends the delay: a key has one pending run, not two.
//! 7. **Backoff is bounded and fair.** Failures are counted beside the key and discarded with it, so the counts need no more memory than
//!    the live keys. An event during a backoff neither shortens the backoff nor counts as a failure.
//! 8. **Shutdown terminates.** After [`WorkQueue::shutdown`] adds return [`Admission::Refused`]. Queued keys are still dequeued, then
//!    every waiting `get` returns `None`. Keys that wait for a delay or backoff are removed; `shutdown` returns them.
//!    [`WorkQueue::drain`] shuts down and returns when no key is queued or being processed, or at its deadline.
//! 9. **No priority starves.** Higher priorities are dequeued first, keys of one priority in the order in which they were queued with
//!    it. A priority that was passed over [`starvation_limit`](WorkQueueBuilder::starvation_limit) times is served next: with `n`
//!    priorities waiting, each is served at least once in `starvation_limit + n` dequeues.
//! 10. **A panic is a failure.** A key whose [`Item`] is dropped while its thread unwinds is retried after its backoff, unless the
//!     thread was unwinding already when the key was dequeued.
//! 11. **No hidden threads.** The queue starts no thread or task, and its futures never block. No lock is held while a rate limiter
//!     is called or a key is dropped.
//!
//! Not guaranteed: an order between keys that become ready at the same time on different threads; a run for every add; anything after
//! the process ends. The queue is in memory: after a restart, the initial list of a controller fills it again.
//!
//! # Differences from client-go
//!
//! [`WorkQueue`] does the work of client-go's `Typed`, `TypedDelayingQueue` and `TypedRateLimitingQueue`; [`DelayingQueue`] and
//! [`RateLimitingQueue`] are aliases.
//!
//! | | client-go | this crate |
//! |---|---|---|
//! | `Done` | called by hand; a stray call can queue a key twice | a guard, finished once |
//! | delayed and then added without a delay | processed twice | processed once |
//! | cancel or postpone a delay | no | [`WorkQueue::cancel`], [`WorkQueue::postpone`] |
//! | an event during a backoff | ends the backoff, and the next failure doubles it | waits for the end of the backoff ([`AddOptions::immediately`] ends it) |
//! | failures of a key that is never forgotten | stay in memory | are discarded with the key |
//! | drain | returns while keys are still queued | returns when none are, or at a deadline |
//! | `ShutDown` during a drain | ends the drain | does not; drop the future of the drain instead |
//! | priorities, causes | no | yes |
//! | metrics | of named queues, if a provider is set | always counted: [`WorkQueue::stats`] |
//! | `Touch` on a merged add | called on a pluggable queue | the priority and cause of the merged add count |

mod builder;
mod cause;
mod core;
mod item;
pub mod limiter;
mod options;
mod parallelize;
mod priority;
mod queue;
mod stats;

#[cfg(feature = "prometheus")]
pub mod prometheus;

use watchkeeper_time::sync;
pub use watchkeeper_time::{Clock, ManualClock, Sleep, TokioClock};

pub use self::{
    builder::WorkQueueBuilder,
    cause::{Cause, Causes},
    item::Item,
    limiter::RateLimiter,
    options::{AddOptions, Admission},
    parallelize::parallelize_until,
    priority::Priority,
    queue::{Drained, Key, WorkQueue},
    stats::{DurationHistogram, QueueStats},
};

/// An alias of [`WorkQueue`], by the name of client-go's queue with delays.
pub type DelayingQueue<K> = WorkQueue<K>;

/// An alias of [`WorkQueue`], by the name of client-go's queue with rate limits.
pub type RateLimitingQueue<K> = WorkQueue<K>;
