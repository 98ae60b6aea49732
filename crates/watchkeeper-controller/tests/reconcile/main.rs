//! The reconcile loop, on the embedded API server and on virtual time.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod errors;
mod finalizers;
mod freshness;
mod hot_loops;
mod mapping;
mod metrics;
mod model;
mod packed;
mod running;
mod sources;
mod support;
