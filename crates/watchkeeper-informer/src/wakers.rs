//! Who waits for something that happens under a lock.

use std::task::Waker;

/// The tasks to wake when it happens. Each of them looks again by itself, so a wake-up too many does no harm.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Notes a task, once.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    /// Moves everybody who waits to where they are woken after the lock is released.
    pub(crate) fn take_into(&mut self, to_wake: &mut Self) {
        to_wake.0.append(&mut self.0);
    }

    /// Moves one task to where it is woken after the lock is released.
    pub(crate) fn take_one_into(waiting: &mut Option<Waker>, to_wake: &mut Self) {
        to_wake.0.extend(waiting.take());
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, tasks: usize) {
        self.0.reserve(tasks);
    }

    /// Wakes everybody. Not to be called with a lock held: a waker may run anything.
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}
