//! Telling people what a controller did, as events they see with `kubectl describe`.
//!
//! A [`Recorder`] takes events from reconcilers and never keeps them waiting; an [`EventWriter`] writes them, as `events.k8s.io/v1`.
//! What is promised:
//!
//! - **Recording never blocks and never fails.** When more events wait than the queue holds, the newest are dropped and counted.
//! - **The same thing said again is a series**: one object with a count and the time of the last occurrence. The second occurrence is written at
//!   once, later ones together, once every [`EventOptions::refresh_interval`] and when the series ends.
//! - **One object cannot flood the cluster**: a source may start [`EventOptions::burst`] events about it, then one in
//!   [`EventOptions::refill_interval`].
//! - **A server that is away is waited for**, within bounds; an event it refuses is given up and counted.
//!
//! Two events are the same thing when their type, reason, action, objects and reporter are. The note is not part of it, and a series
//! shows the first: servers do not let it be changed.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper_controller::events::{EventType, Recorder};
//!
//! fn tell(recorder: &Recorder, config: &ConfigMap) {
//!     recorder.event(config, EventType::Normal, "Synced", "Sync", "everything is as it should be");
//! }
//! ```
//!
//! A manager hands out recorders and writes their events ([`Manager::recorder`](crate::manager::Manager::recorder)); without one,
//! [`channel`] makes both halves.

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
