//! Where the server's time comes from.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    time::{Duration, SystemTime},
};

/// A future that ends when some time has passed.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time, as the server sees it: the date it writes into objects, and a way to wait.
///
/// Injected so that a server can run on virtual time. [`TokioClock`] is the default and follows tokio's paused time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The date.
    fn now(&self) -> SystemTime;

    /// A future that ends when `duration` has passed.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// The wall clock when it was made, moved on by tokio's time: in tests with paused time the date moves exactly as far as
/// the test moves it.
#[derive(Debug, Clone)]
pub struct TokioClock {
    date: SystemTime,
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that starts at the date of the machine.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
    pub fn new() -> Self {
        Self { date: SystemTime::now(), origin: tokio::time::Instant::now() }
    }

    /// A clock that starts at `date`, so that a test knows every timestamp.
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
