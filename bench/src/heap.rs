//! Live heap bytes of this process, from an allocator that counts.
//!
//! It counts in every run, not only in the memory rows: one binary has one allocator. What that costs is two atomic
//! additions per allocation, so each run also reports how often it allocated; a row that allocates next to never
//! pays next to nothing.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes asked for and not given back, as requested (the allocator's own rounding is not in it).
pub(crate) fn live_bytes() -> u64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated) as u64
}

/// Allocations and reallocations since the process started.
pub(crate) fn allocations() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.allocations + stats.reallocations) as u64
}
