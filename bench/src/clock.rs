//! The clocks of a benchmark: the one place here that reads real time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time; this is the clock it injects")]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

/// User and system time this process has used so far, all threads together.
pub(crate) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The kernel's contract is a non-negative time with less than a second of nanoseconds.
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
