//! The source of the server's time.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    time::{Duration, SystemTime},
};

/// A future that completes after a duration.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The server's source of time: the date written into objects, and timers.
///
/// Inject a clock to run a server on virtual time. [`TokioClock`] is the default and follows tokio's paused time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current date.
    fn now(&self) -> SystemTime;

    /// Returns a future that completes when `duration` has passed.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// A [`Clock`] that starts at the wall-clock time of its creation and advances with tokio's time.
///
/// In tests with paused time, the date advances exactly as far as the test advances the time.
#[derive(Debug, Clone)]
pub struct TokioClock {
    date: SystemTime,
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// Creates a clock that starts at the current date of the machine.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
    pub fn new() -> Self {
        Self { date: SystemTime::now(), origin: tokio::time::Instant::now() }
    }

    /// Creates a clock that starts at `date`, so that a test can predict every timestamp.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
    pub fn starting_at(date: SystemTime) -> Self {
        Self { date, origin: tokio::time::Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> SystemTime {
        self.date + self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }
}
