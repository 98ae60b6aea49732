//! The clocks of a benchmark: the only place in this crate that reads real time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the wall-clock time.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time; this is the clock it injects")]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

/// Returns the user and system time of this process so far, over all threads.
pub(crate) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The kernel guarantees a non-negative time with less than a second of nanoseconds.
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Blocks the thread, between the operations of a load.
#[expect(clippy::disallowed_methods, reason = "a load has pauses in real time")]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
