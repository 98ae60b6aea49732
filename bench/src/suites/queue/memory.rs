//! Rows that compare the heap a full queue holds.
//!
//! The caller holds all keys before the baseline is taken, and the queue shares them, so their bytes are in neither
//! side's figure.

use watchkeeper_workqueue::WorkQueue;

use super::delay::delay_all;
use super::load::{self, Key};
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Keys waiting in the queue.
pub(super) fn queued(load: Load) -> Result<Measurement, RunFailure> {
    held(load, |queue, keys| {
        for key in keys {
            queue.add_ref(key);
        }
    })
}

/// Keys waiting for their time.
pub(super) fn delayed(load: Load) -> Result<Measurement, RunFailure> {
    held(load, delay_all)
}

fn held(load: Load, fill: fn(&WorkQueue<Key>, &[Key])) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let runtime = load::one_thread()?;
    let _context = runtime.enter();
    let before = heap::live_bytes();
    let meter = Meter::start();
    let queue = WorkQueue::new("memory");
    fill(&queue, &keys);
    let mut measured = meter.stop(load.operations);
    // The result's own few bytes are counted too; they are nothing beside a million keys.
    measured.live_heap_bytes = Some(heap::live_bytes().saturating_sub(before));
    Ok(measured)
}
