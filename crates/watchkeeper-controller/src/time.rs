//! The injected clock of managers and electors.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use watchkeeper_time::{Clock, Sleep, TokioClock};

/// A shared handle of a [`Clock`], with the timestamps of Kubernetes objects.
///
/// All decisions use the monotonic time, which never goes backwards. The wall-clock time provides only the
/// timestamps in objects.
#[derive(Debug, Clone)]
pub struct Time {
    clock: Arc<dyn Clock>,
}

/// A point in time: monotonic and wall-clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The time since the origin of the clock.
    pub(crate) at: Duration,
    /// The wall-clock time.
    pub(crate) date: Timestamp,
}

impl Time {
    /// Returns tokio's clock with the wall-clock time of the machine.
    pub fn system() -> Self {
        Self::new(TokioClock::new())
    }

    /// Creates a handle of `clock`.
    pub fn new(clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock) }
    }

    /// Returns tokio's clock with a wall-clock time that starts at `date` and advances with tokio's time. Under
    /// paused time, every timestamp of a test is known.
    pub fn starting_at(date: Timestamp) -> Self {
        Self::new(TokioClock::starting_at(date.into()))
    }

    /// Returns the time since the origin of the clock.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Returns the wall-clock time. A time outside the range of timestamps becomes the latest timestamp.
    pub fn date(&self) -> Timestamp {
        Timestamp::try_from(self.clock.wall_time()).unwrap_or(Timestamp::MAX)
    }

    /// Returns the current time.
    pub(crate) fn moment(&self) -> Moment {
        Moment { at: self.now(), date: self.date() }
    }

    /// Waits until [`now`](Self::now) is at least `at`.
    pub fn sleep_until(&self, at: Duration) -> Sleep {
        self.clock.sleep_until(at)
    }

    /// Waits for `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.clock.sleep(duration)
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
