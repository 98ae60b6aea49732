//! Live heap bytes of this process, from a counting allocator.
//!
//! Counting is active in every run of the program, not only in the memory rows, because a program has one
//! allocator. The cost is two atomic additions per allocation, on counters that all threads share, so each
//! run also reports its number of allocations. A row that rarely allocates is hardly affected. Rows that
//! allocate continuously on two threads run in the [other program](crate::programs).

use stats_alloc::INSTRUMENTED_SYSTEM;

/// Returns the bytes allocated and not freed, as requested (without the allocator's rounding).
pub(crate) fn live_bytes() -> u64 {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated) as u64
}

/// Returns the number of allocations and reallocations since the process started; zero without a counting
/// allocator.
pub(crate) fn allocations() -> u64 {
    let stats = INSTRUMENTED_SYSTEM.stats();
    (stats.allocations + stats.reallocations) as u64
}
