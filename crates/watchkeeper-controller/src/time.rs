//! Injected clocks.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use watchkeeper_workqueue::{Clock, Sleep, TokioClock};

/// A pair of clocks: a monotonic clock for decisions, and a wall clock for timestamps.
///
/// All decisions use the monotonic clock, which never goes backwards. The wall clock provides only the
/// timestamps in objects.
#[derive(Clone)]
pub struct Time {
    clock: Arc<dyn Clock>,
    date: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A point in time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time since the origin of the monotonic clock.
    pub at: Duration,
    /// The wall-clock time.
    pub date: Timestamp,
}

impl Time {
    /// Returns the system clocks.
    pub fn system() -> Self {
        Self::new(TokioClock::new(), Timestamp::now)
    }

    /// Creates a pair of the given clocks.
    pub fn new(clock: impl Clock, date: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), date: Arc::new(date) }
    }

    /// Returns tokio's clock and a wall clock that starts at `date` and advances with it. Under paused time,
    /// every timestamp of a test is known.
    pub fn starting_at(date: Timestamp) -> Self {
        let clock = TokioClock::new();
        let dates = clock.clone();
        Self::new(clock, move || date.saturating_add(dates.now()).unwrap_or(date))
    }

    /// Returns the time since the origin of the monotonic clock.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Returns the wall-clock time.
    pub fn date(&self) -> Timestamp {
        (self.date)()
    }

    /// Returns the current time on both clocks.
    pub fn moment(&self) -> Moment {
        Moment { at: self.now(), date: self.date() }
    }

    /// Waits until [`now`](Self::now) is at least `at`.
    pub fn sleep_until(&self, at: Duration) -> Sleep {
        self.clock.sleep_until(at)
    }

    /// Waits for `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.clock.sleep_until(self.now().saturating_add(duration))
    }

    /// Returns the output of `future`, or `None` if `duration` elapses first.
    pub async fn within<F: Future>(&self, duration: Duration, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep(duration) => None,
        }
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Time").field("clock", &self.clock).finish_non_exhaustive()
    }
}
