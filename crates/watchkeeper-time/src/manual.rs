//! A clock for tests without a runtime.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, SystemTime},
};

use crate::{Clock, Sleep, sync::Mutex};

/// A clock that only moves when [`advance`](ManualClock::advance) is called, for tests without a runtime.
///
/// Its wall-clock time starts at the Unix epoch. Clones share the time.
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
        Self::default()
    }

    /// Moves the time forward and wakes the timers that end.
    pub fn advance(&self, by: Duration) {
        let due: Vec<(Duration, Waker)> = {
            let mut time = self.shared.lock();
            time.now = time.now.saturating_add(by);
            let now = time.now;
            time.sleepers.extract_if(.., |(at, _)| *at <= now).collect()
        };
        // Without the lock, because a waker may poll its task, which reads this clock.
        for (_, waker) in due {
            waker.wake();
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.shared.lock().now
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.now()
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
