//! The store, packed objects, the log and the delta FIFO under Shuttle: thousands of schedules of a few threads, each
//! checked against the invariants. Shuttle reports a lost wake-up as a deadlock, with the schedule that reproduces it.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p watchkeeper-informer --test interleavings --release --target-dir target/shuttle`
#![cfg(shuttle)]

mod entry;
#[path = "../components/fifo_fixture.rs"]
mod fifo_fixture;
mod log_and_queue;
#[path = "../components/cache/objects.rs"]
mod objects;
mod store;

use std::sync::Arc;

/// Runs both of Shuttle's searches: uniformly random schedules, and schedules with few preemptions at the worst places.
fn explore(schedules: usize, body: impl Fn() + Send + Sync + 'static) {
    let body = Arc::new(body);
    let again = Arc::clone(&body);
    shuttle::check_random(move || body(), schedules);
    shuttle::check_pct(move || again(), schedules, 3);
}
