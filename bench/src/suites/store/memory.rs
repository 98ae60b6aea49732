//! The memory of the store in addition to the pods, which the caller shares.

use super::pods;
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

pub(super) fn held(load: Load) -> Result<Measurement, RunFailure> {
    let pods = pods::pods(0);
    let pods = pods.get(..usize::try_from(load.operations)?.min(pods.len())).unwrap_or_default();
    let before = heap::live_bytes();
    let meter = Meter::start();
    let (store, _) = pods::filled_store(pods)?;
    let mut measured = meter.stop(pods.len() as u64);
    measured.live_heap_bytes = Some(heap::live_bytes().saturating_sub(before));
    pods::expect("pods stored", store.len() as u64, pods.len() as u64)?;
    Ok(measured)
}
