//! The trait of clocks.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// A future that completes when a clock reaches a given time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time: monotonic time for decisions, wall-clock time for timestamps, and timers.
///
/// Decisions use [`now`](Self::now), which never decreases. [`wall_time`](Self::wall_time) may jump in either direction
/// when the clock of the machine is set, so it is only written into objects.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the time since the origin of this clock. Never decreases.
    ///
    /// Called while locks are held, so it must not block.
    fn now(&self) -> Duration;

    /// Returns the wall-clock time.
    fn wall_time(&self) -> SystemTime;

    /// Returns a future that completes when [`now`](Self::now) is at least `at`, a time since the origin of this
    /// clock. Completes immediately if `at` has passed.
    fn sleep_until(&self, at: Duration) -> Sleep;

    /// Returns a future that completes when `duration` has passed.
    fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.now().saturating_add(duration))
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }

    fn wall_time(&self) -> SystemTime {
        (**self).wall_time()
    }

    fn sleep_until(&self, at: Duration) -> Sleep {
        (**self).sleep_until(at)
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        (**self).sleep(duration)
    }
}
