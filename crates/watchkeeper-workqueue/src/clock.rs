//! The time source of a queue.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use crate::sync::Mutex;

/// A future that ends when a clock reaches a given time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time: the time since a fixed origin, and timers.
///
/// [`TokioClock`] is the default and follows tokio's paused time. [`ManualClock`] needs no runtime.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the time since the origin of this clock. Never decreases.
    ///
    /// Called while the queue is locked, so it must not block.
    fn now(&self) -> Duration;

    /// Returns a future that ends when [`Clock::now`] is at least `at`.
    fn sleep_until(&self, at: Duration) -> Sleep;
}

/// The clock of tokio: real time, or virtual time in tests that pause it.
///
/// Waiting needs a tokio runtime with its timer enabled; reading the time does not. Timers of tokio have a resolution of one
/// millisecond.
#[derive(Debug, Clone)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// Creates a clock whose origin is now.
    #[expect(clippy::disallowed_methods, reason = "this is the injected clock")]
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
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

    fn sleep_until(&self, at: Duration) -> Sleep {
        // Centuries away if it does not fit an `Instant`. The queue sleeps again when it wakes up before the time.
        const FAR: Duration = Duration::from_hours(365 * 24);
        let until = self.origin.checked_add(at).unwrap_or_else(|| self.origin + self.now() + FAR);
        Box::pin(tokio::time::sleep_until(until))
    }
}

/// A clock that only moves when [`advance`](ManualClock::advance) is called, for tests without a runtime.
///
/// Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    shared: Arc<Mutex<ManualTime>>,
}

#[derive(Debug, Default)]
struct ManualTime {
    now: Duration,
    sleepers: Vec<(Duration, Waker)>,
}

impl ManualClock {
    /// Creates a clock at time zero.
    pub fn new() -> Self {
        Self { shared: Arc::new(Mutex::new(ManualTime::default())) }
    }

    /// Moves the time forward and wakes the timers that end.
    pub fn advance(&self, by: Duration) {
        let due: Vec<(Duration, Waker)> = {
            let mut time = self.shared.lock();
            time.now = time.now.saturating_add(by);
            let now = time.now;
            time.sleepers.extract_if(.., |(at, _)| *at <= now).collect()
        };
        for (_, waker) in due {
            waker.wake();
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.shared.lock().now
    }

    fn sleep_until(&self, at: Duration) -> Sleep {
        let shared = Arc::clone(&self.shared);
        Box::pin(poll_fn(move |context| {
            let mut time = shared.lock();
            if time.now >= at {
                return Poll::Ready(());
            }
            time.sleepers.push((at, context.waker().clone()));
            Poll::Pending
        }))
    }
}
