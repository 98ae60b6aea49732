//! Recording of Kubernetes events, which `kubectl describe` shows.
//!
//! A [`Recorder`] accepts events from reconcilers, and an [`EventWriter`] writes them as `events.k8s.io/v1`. Guarantees:
//!
//! - **Recording never blocks and never fails.** If the queue is full, the newest events are dropped and counted.
//! - **Repeated events form a series**: one object with a count and the time of the last occurrence. The second occurrence
//!   is written immediately. Later ones are written together, once per [`EventOptions::refresh_interval`] and when the
//!   series ends.
//! - **One object cannot flood the cluster**: each controller may start [`EventOptions::burst`] events about an object, and
//!   after that one per [`EventOptions::refill_interval`].
//! - **Failed writes are retried** within limits. An event that the server rejects is dropped and counted.
//!
//! Not guaranteed: delivery. Dropped events are counted in `watchkeeper_events_total` ([`EventMetrics`]).
//!
//! Two events belong to the same series if their type, reason, action, objects and reporter are equal. The note is not
//! compared: a series shows its first note, because servers reject changes of it.
//!
//! A manager creates recorders and writes their events: see [`Manager::recorder`](crate::manager::Manager::recorder).
//! Without a manager, [`channel`] creates both halves.

mod aggregator;
mod metrics;
mod object;
mod options;
mod recorder;
mod writer;

pub use metrics::EventMetrics;
pub use object::EventType;
pub use options::EventOptions;
pub use recorder::Recorder;
pub use writer::{EventWriter, channel};
