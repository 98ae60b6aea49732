//! Tests against the embedded API server, with paused time where time passes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    clippy::disallowed_methods,
    reason = "how long something took by the runtime's own clock, which is paused"
)]

mod events;
mod faults;
mod leader;
mod manager;
mod objects;
mod program;
mod rbac;
