//! The reconcile loop, on the embedded API server and on virtual time.

mod errors;
mod freshness;
mod hot_loops;
mod mapping;
mod model;
mod running;
mod seen_outside;
mod sources;
mod support;
