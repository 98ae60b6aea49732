//! Tests against the embedded API server, with paused time where time passes.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
#![expect(clippy::disallowed_methods, reason = "durations are measured by the paused clock of the runtime")]

mod events;
mod faults;
mod leader;
mod manager;
mod objects;
mod program;
mod rbac;
mod support;
