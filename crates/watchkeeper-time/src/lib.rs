//! The injected clock of all Watchkeeper crates, and the locks that Shuttle replaces.
//!
//! Components take a [`Clock`] instead of reading the time of the machine, so tests run on virtual time.
//! [`TokioClock`] is the clock of programs and of tests with tokio's paused time. [`ManualClock`] needs no runtime.
//!
//! ```
//! use std::time::Duration;
//!
//! use watchkeeper_time::{Clock, ManualClock};
//!
//! let clock = ManualClock::new();
//! let started_at = clock.now();
//! clock.advance(Duration::from_secs(3));
//! assert_eq!(clock.now() - started_at, Duration::from_secs(3));
//! ```

mod clock;
mod manual;
pub mod sync;
mod tokio_clock;

pub use self::{
    clock::{Clock, Sleep},
    manual::ManualClock,
    tokio_clock::TokioClock,
};
