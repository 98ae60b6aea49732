//! Rows that compare the heap of a full queue.
//!
//! The caller holds all keys before the baseline is measured, and the queue shares them, so their bytes are in the figure of
//! neither side.

use std::sync::Arc;

use watchkeeper_workqueue::WorkQueue;

use super::delay::delay_all;
use super::load::{self, Key};
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Measures queued keys.
pub(super) fn queued(load: Load) -> Result<Measurement, RunFailure> {
    held(load, |queue, keys| {
        let event = load::event();
        for key in keys {
            queue.add_with(Arc::clone(key), event.clone());
        }
    })
}

/// Measures delayed keys.
pub(super) fn delayed(load: Load) -> Result<Measurement, RunFailure> {
    held(load, delay_all)
}

fn held(load: Load, fill: fn(&WorkQueue<Key>, &[Key])) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let runtime = load::one_thread()?;
    let _context = runtime.enter();
    let before = heap::live_bytes();
    let meter = Meter::start();
    let measured_queue = load::Measured::new("memory")?;
    fill(&measured_queue.queue, &keys);
    let mut measured = meter.stop(load.operations);
    // Includes some hundred bytes of the result and the registry, which are negligible beside a million keys.
    measured.live_heap_bytes = Some(heap::live_bytes().saturating_sub(before));
    Ok(measured)
}
