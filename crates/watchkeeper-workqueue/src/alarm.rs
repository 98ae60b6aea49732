//! Wake-ups at a time, by a thread that does nothing else.

use std::{
    collections::BTreeMap,
    future::Future,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

// Real time and a real thread, also where interleavings are explored.
use parking_lot::{Condvar, Mutex, MutexGuard};

/// A future that ends at a time, or right after it.
///
/// One thread serves the whole process. It starts with the first alarm and ends when none has been set for a while. If it
/// cannot be started the alarm never goes off: wait for something else as well.
#[derive(Debug)]
pub(crate) struct Alarm {
    at: Instant,
    /// Its number, once it is set.
    set: Option<u64>,
}

static CLOCKWORK: Clockwork = Clockwork {
    state: Mutex::new(State { set: BTreeMap::new(), count: 0, is_running: false }),
    earlier: Condvar::new(),
};

struct Clockwork {
    state: Mutex<State>,
    /// An alarm was set that goes off before all others.
    earlier: Condvar,
}

struct State {
    /// Whom to wake when; alarms of the same time are told apart by their number.
    set: BTreeMap<(Instant, u64), Waker>,
    count: u64,
    is_running: bool,
}

/// So long the thread waits for the next alarm when none is set.
const IDLE: Duration = Duration::from_secs(10);

impl Alarm {
    /// An alarm that goes off after `delay`.
    pub(crate) fn after(delay: Duration) -> Self {
        Self { at: now() + delay, set: None }
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = CLOCKWORK.state.lock();
        if let Some(number) = self.set {
            let Some(known) = state.set.get_mut(&(self.at, number)) else { return Poll::Ready(()) };
            let earlier = mem::replace(known, context.waker().clone());
            // Where nothing is locked: with the last waker of a task the task may go, and alarms with it.
            drop(state);
            drop(earlier);
            return Poll::Pending;
        }
        if now() >= self.at {
            return Poll::Ready(());
        }
        if state.runs() {
            state.count += 1;
            let key = (self.at, state.count);
            state.set.insert(key, context.waker().clone());
            self.set = Some(state.count);
            if state.set.first_key_value().is_some_and(|(first, _)| *first == key) {
                CLOCKWORK.earlier.notify_one();
            }
        }
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(number) = self.set {
            let waker = CLOCKWORK.state.lock().set.remove(&(self.at, number));
            // Where nothing is locked, here too.
            drop(waker);
        }
    }
}

impl State {
    /// Whether the thread runs, which it does unless it cannot be started.
    fn runs(&mut self) -> bool {
        if !self.is_running {
            let thread = thread::Builder::new().name("watchkeeper-alarm".to_owned());
            self.is_running = thread.spawn(go_off).is_ok();
        }
        self.is_running
    }

    /// Takes out whoever is to be woken.
    fn take_due(&mut self, now: Instant) -> Vec<Waker> {
        let later = self.set.split_off(&(now, u64::MAX));
        mem::replace(&mut self.set, later).into_values().collect()
    }
}

/// The thread.
fn go_off() {
    let mut state = CLOCKWORK.state.lock();
    loop {
        let due = state.take_due(now());
        if !due.is_empty() {
            MutexGuard::unlocked(&mut state, || due.into_iter().for_each(wake));
            continue;
        }
        match state.set.first_key_value().map(|((at, _), _)| *at) {
            Some(at) => {
                CLOCKWORK.earlier.wait_until(&mut state, at);
            }
            None if CLOCKWORK.earlier.wait_for(&mut state, IDLE).timed_out() && state.set.is_empty() => {
                state.is_running = false;
                return;
            }
            None => {}
        }
    }
}

/// A waker is somebody else's code: if it panics, the others are still woken.
fn wake(waker: Waker) {
    drop(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}

#[expect(clippy::disallowed_methods, reason = "alarms go off in real time, and only clocks set them")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, mpsc},
        task::Wake,
    };

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn poll(alarm: &mut Alarm, waker: &Waker) -> Poll<()> {
        Pin::new(alarm).poll(&mut Context::from_waker(waker))
    }

    #[tokio::test]
    async fn alarms_go_off_and_not_early() {
        for micros in [0, 1, 500, 2000, 1000] {
            let alarm = Alarm::after(Duration::from_micros(micros));
            let at = alarm.at;
            alarm.await;
            assert!(now() >= at, "after {micros} us");
        }
    }

    #[test]
    fn only_those_that_are_due_are_taken_out() {
        let mut state = State { set: BTreeMap::new(), count: 0, is_running: true };
        let start = now();
        for (number, seconds) in [(1, 3), (2, 1), (3, 2), (4, 2)] {
            state.set.insert((start + Duration::from_secs(seconds), number), Waker::noop().clone());
        }
        assert_eq!(state.take_due(start).len(), 0);
        assert_eq!(state.take_due(start + Duration::from_secs(2)).len(), 3);
        assert_eq!(state.set.keys().map(|(_, number)| *number).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn an_alarm_wakes_who_asked_last_and_one_that_is_dropped_nobody() {
        struct Other;
        impl Wake for Other {
            fn wake(self: Arc<Self>) {}
        }
        let other = Waker::from(Arc::new(Other));
        let mut alarm = Alarm::after(HOUR);
        assert!(poll(&mut alarm, Waker::noop()).is_pending() && poll(&mut alarm, &other).is_pending());
        let key = (alarm.at, alarm.set.unwrap());
        assert!(CLOCKWORK.state.lock().set[&key].will_wake(&other));
        drop(alarm);
        assert!(!CLOCKWORK.state.lock().set.contains_key(&key));
    }

    #[tokio::test]
    async fn a_waker_that_panics_is_nothing_to_other_alarms() {
        struct Panics(mpsc::Sender<()>);
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                self.0.send(()).unwrap();
                panic!("a waker may do anything");
            }
        }
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Panics(sender)));
        // Again, if the time is up before it is set.
        let mut alarm = Alarm::after(Duration::from_millis(1));
        while poll(&mut alarm, &waker).is_ready() {
            alarm = Alarm::after(Duration::from_millis(1));
        }
        woken.recv().unwrap();
        assert!(poll(&mut alarm, &waker).is_ready(), "it went off");
        Alarm::after(Duration::from_millis(1)).await;
    }
}
