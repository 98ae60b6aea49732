//! Where the queue's time comes from.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{alarm::Alarm, sync::Mutex};

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
///
/// tokio's timer counts whole milliseconds and ends up to two of them late. So the last few of a wait are also counted by an
/// alarm on a thread of its own, one for the whole process, which is right to a fraction of one.
#[derive(Debug, Clone)]
pub struct TokioClock {
    origin: tokio::time::Instant,
    /// The same moment, in time that is never virtual.
    real_origin: std::time::Instant,
}

impl TokioClock {
    /// A clock whose origin is now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now(), real_origin: std::time::Instant::now() }
    }

    /// Whether time is known to be virtual: it is not where it would be by itself.
    fn is_virtual(&self) -> bool {
        const MORE_THAN_CHANCE: Duration = Duration::from_millis(10);
        self.origin.elapsed().abs_diff(self.real_origin.elapsed()) > MORE_THAN_CHANCE
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
        if self.is_virtual() {
            return Box::pin(tokio::time::sleep_until(until));
        }
        let origin = self.origin;
        Box::pin(async move {
            let left = || until.duration_since(origin).saturating_sub(origin.elapsed());
            if left() > ALARM_BEFORE {
                tokio::time::sleep_until(until - ALARM_BEFORE).await;
            }
            let alarm = Alarm::after(left().max(SHORTEST_ALARM));
            end_of(tokio::time::sleep_until(until), alarm, || left().is_zero()).await;
        })
    }
}

/// So long before the end of a wait the alarm is set: most waits, such as those for a timeout, are given up before it.
const ALARM_BEFORE: Duration = Duration::from_millis(3);

/// No alarm goes off sooner, so that a thousand keys due within a millisecond wake a worker twice and not a thousand times.
const SHORTEST_ALARM: Duration = Duration::from_micros(500);

/// Ends with the sleep, or with the alarm if the time has come by then: where time is virtual, and not known to be, an alarm
/// says nothing.
async fn end_of(
    sleep: impl Future<Output = ()>,
    alarm: impl Future<Output = ()>,
    has_come: impl Fn() -> bool,
) {
    let (mut sleep, mut alarm) = (pin!(sleep), pin!(Some(alarm)));
    poll_fn(|context| {
        if let Some(ringing) = alarm.as_mut().as_pin_mut()
            && ringing.poll(context).is_ready()
        {
            alarm.set(None);
            if has_come() {
                return Poll::Ready(());
            }
        }
        sleep.as_mut().poll(context)
    })
    .await;
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn is_over(sleep: impl Future<Output = ()>, alarm: impl Future<Output = ()>, has_come: bool) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let mut end = pin!(end_of(sleep, alarm, || has_come));
        // Twice, as somebody does who is woken for something else.
        end.as_mut().poll(&mut context).is_ready() || end.as_mut().poll(&mut context).is_ready()
    }

    #[test]
    fn a_wait_ends_with_its_sleep_or_with_an_alarm_that_is_not_early() {
        assert!(!is_over(pending(), pending(), true));
        assert!(is_over(ready(()), pending(), true));
        assert!(is_over(pending(), ready(()), true));
        assert!(!is_over(pending(), ready(()), false), "virtual time has not come that far");
        assert!(is_over(ready(()), ready(()), false), "it has by now");
    }

    #[tokio::test]
    async fn no_wait_on_real_time_ends_early() {
        let clock = TokioClock::new();
        for micros in [0, 1, 400, 2_000, 3_001, 5_000] {
            let at = clock.now() + Duration::from_micros(micros);
            clock.sleep_until(at).await;
            assert!(clock.now() >= at, "a wait of {micros} us");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_on_virtual_time_take_no_real_time() {
        let clock = TokioClock::new();
        for wait in [Duration::from_micros(1), Duration::from_hours(24), Duration::MAX] {
            let before = clock.now();
            clock.sleep_until(before.saturating_add(wait)).await;
            let waited = clock.now().saturating_sub(before);
            assert!(waited >= wait.min(Duration::from_hours(365 * 24)), "{wait:?} took {waited:?}");
        }
    }
}
