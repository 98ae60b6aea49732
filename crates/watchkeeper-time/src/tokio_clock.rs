//! The clock of programs.

use std::{
    future::Future,
    time::{Duration, Instant as StdInstant, SystemTime},
};

use tokio::time::Instant;

use crate::{Clock, Sleep};

/// The latest end of a timer whose time does not fit an [`Instant`]. Callers sleep again when they are woken early.
const FAR: Duration = Duration::from_hours(365 * 24);

/// The clock of tokio: real time, or virtual time in tests that pause it.
///
/// Waiting needs a tokio runtime with its timer enabled; reading the time does not. Timers of tokio have a resolution of one
/// millisecond.
///
/// | constructor | wall-clock time |
/// |---|---|
/// | [`new`](Self::new) | that of the machine, also under paused time |
/// | [`starting_at`](Self::starting_at) | starts at a given date and advances with tokio's time |
/// | [`starting_now`](Self::starting_now) | starts at the current date and advances with tokio's time |
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: Instant,
    wall: WallTime,
}

/// The source of the wall-clock time.
#[derive(Debug, Clone, Copy)]
enum WallTime {
    /// The clock of the machine, read each time, so that corrections of it take effect.
    Machine,
    /// A date at the origin of the clock, which advances with tokio's time.
    StartingAt(SystemTime),
}

impl TokioClock {
    /// Creates a clock whose origin is now and whose wall-clock time is that of the machine, even under paused time.
    pub fn new() -> Self {
        Self { origin: instant(), wall: WallTime::Machine }
    }

    /// Creates a clock whose origin is now and whose wall-clock time starts at `date` and advances with tokio's time.
    ///
    /// Under paused time, every timestamp of a test is known.
    pub fn starting_at(date: SystemTime) -> Self {
        Self { origin: instant(), wall: WallTime::StartingAt(date) }
    }

    /// Creates a clock like [`starting_at`](Self::starting_at) that starts at the current date of the machine.
    pub fn starting_now() -> Self {
        Self::starting_at(machine_date())
    }

    /// Returns the current time as a [`std::time::Instant`], for comparison with other instants. Follows paused time.
    pub fn instant(&self) -> StdInstant {
        instant().into_std()
    }

    /// Returns a future that completes when [`now`](Clock::now) is at least `at`, as [`Clock::sleep_until`] does, but
    /// without an allocation.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with its timer enabled.
    pub fn timer(&self, at: Duration) -> impl Future<Output = ()> + Send + use<> {
        let until = self.origin.checked_add(at).unwrap_or_else(|| instant() + FAR);
        tokio::time::sleep_until(until)
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wall_time(&self) -> SystemTime {
        match self.wall {
            WallTime::Machine => machine_date(),
            WallTime::StartingAt(date) => date + self.now(),
        }
    }

    fn sleep_until(&self, at: Duration) -> Sleep {
        Box::pin(self.timer(at))
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the injected clock")]
fn instant() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "this is the injected clock")]
fn machine_date() -> SystemTime {
    SystemTime::now()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn time_and_date_advance_with_paused_time() {
        let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
        clock.sleep(3 * SECOND).await;
        assert_eq!(clock.now(), 3 * SECOND);
        assert_eq!(clock.wall_time(), SystemTime::UNIX_EPOCH + 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_beyond_the_range_of_instants_is_waited_for_a_year() {
        let clock = TokioClock::new();
        clock.sleep_until(Duration::MAX).await;
        assert!(clock.now() >= FAR && clock.now() < FAR + SECOND, "{:?}", clock.now());
    }

    #[tokio::test(start_paused = true)]
    async fn the_date_of_the_machine_does_not_follow_paused_time() {
        let clock = TokioClock::new();
        let before = clock.wall_time();
        clock.sleep(FAR).await;
        assert!(clock.wall_time() < before + FAR);
    }
}
