//! Where the time comes from.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use watchkeeper_workqueue::{Clock, Sleep, TokioClock};

/// Two clocks: one to count by, one to write down.
///
/// What is decided is decided by the first, which never goes back and which nobody sets. The date is what objects carry for
/// people to read.
#[derive(Clone)]
pub struct Time {
    clock: Arc<dyn Clock>,
    date: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A moment, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// How long after the origin of the clock that counts.
    pub at: Duration,
    /// The date.
    pub date: Timestamp,
}

impl Time {
    /// The clocks of the machine.
    pub fn system() -> Self {
        Self::new(TokioClock::new(), Timestamp::now)
    }

    /// Other clocks.
    pub fn new(clock: impl Clock, date: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), date: Arc::new(date) }
    }

    /// tokio's clock, and a date that starts at `date` and moves with it: under paused time a test knows every date.
    pub fn starting_at(date: Timestamp) -> Self {
        let clock = TokioClock::new();
        let dates = clock.clone();
        Self::new(clock, move || date.saturating_add(dates.now()).unwrap_or(date))
    }

    /// How long since the origin of the clock that counts.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The date.
    pub fn date(&self) -> Timestamp {
        (self.date)()
    }

    /// Both.
    pub fn moment(&self) -> Moment {
        Moment { at: self.now(), date: self.date() }
    }

    /// Waits until [`now`](Self::now) is at least `at`.
    pub fn sleep_until(&self, at: Duration) -> Sleep {
        self.clock.sleep_until(at)
    }

    /// Waits for so long.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.clock.sleep_until(self.now().saturating_add(duration))
    }

    /// What `future` gives, if it does within so long.
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
