//! Live heap bytes of this process, from an allocator that counts.
//!
//! It counts in every run of the program that has it, not only in the memory rows: one program has one allocator. What
//! that costs is two atomic additions per allocation, on counters that all threads share, so each run also reports how
//! often it allocated: a row that allocates next to never pays next to nothing. One that allocates all the time, on two
//! threads, is run by the [other program](crate::programs).

use stats_alloc::INSTRUMENTED_SYSTEM;

/// Bytes asked for and not given back, as requested (the allocator's own rounding is not in it).
pub(crate) fn live_bytes() -> u64 {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated) as u64
}

/// Allocations and reallocations since the process started. Zero where nothing counts them.
pub(crate) fn allocations() -> u64 {
    let stats = INSTRUMENTED_SYSTEM.stats();
    (stats.allocations + stats.reallocations) as u64
}
