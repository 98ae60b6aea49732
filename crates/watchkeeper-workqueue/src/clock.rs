//! Where the queue's time comes from.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::sync::Mutex;

/// A future that ends when a clock reaches a given time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time, as the queue sees it: how long since some fixed moment, and a way to wait.
///
/// Injected so that a queue can run on virtual time. [`TokioClock`] is the default and follows tokio's paused
/// time; [`ManualClock`] needs no runtime at all.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Time since this clock's origin. Never goes backwards.
    fn now(&self) -> Duration;

    /// A future that ends once [`Clock::now`] is at least `at`.
    fn sleep_until(&self, at: Duration) -> Sleep;
}

/// tokio's clock: real time in production, virtual in tests with paused time.
///
/// Waiting on it needs a tokio runtime with its timer enabled; reading it needs none.
#[derive(Debug, Clone)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// A clock whose origin is now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
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
        // A deadline past what an Instant can hold is centuries away: sleep a year and let the queue ask again.
        const FAR: Duration = Duration::from_hours(365 * 24);
        let until = self.origin.checked_add(at).unwrap_or_else(|| self.origin + self.now() + FAR);
        Box::pin(tokio::time::sleep_until(until))
    }
}

/// A clock that moves only when told to, for tests that run without a runtime's timer.
///
/// Clones share the same time.
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
    /// A clock that stands at zero.
    pub fn new() -> Self {
        Self { shared: Arc::new(Mutex::new(ManualTime::default())) }
    }

    /// Moves the time forward and wakes whoever slept until then.
    pub fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut time = self.shared.lock();
            time.now = time.now.saturating_add(by);
            let now = time.now;
            let (due, later) = std::mem::take(&mut time.sleepers).into_iter().partition(|(at, _)| *at <= now);
            time.sleepers = later;
            let due: Vec<(Duration, Waker)> = due;
            due.into_iter().map(|(_, waker)| waker).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.shared.lock().now
    }

    fn sleep_until(&self, at: Duration) -> Sleep {
        Box::pin(ManualSleep { clock: self.clone(), at })
    }
}

struct ManualSleep {
    clock: ManualClock,
    at: Duration,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut time = self.clock.shared.lock();
        if time.now >= self.at {
            return Poll::Ready(());
        }
        let entry = (self.at, context.waker().clone());
        time.sleepers.push(entry);
        Poll::Pending
    }
}
