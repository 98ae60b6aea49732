//! The reconcile loop, on the embedded API server and on virtual time.

#![expect(clippy::unwrap_used, reason = "what the tests share fails them, as they do themselves")]

mod errors;
mod finalizers;
mod freshness;
mod hot_loops;
mod mapping;
mod model;
mod running;
mod seen_outside;
mod sources;
mod support;
