//! Tasks that wait for a change under a lock.

use std::task::Waker;

/// The wakers of tasks that wait for a change. A woken task checks the condition itself, so spurious wake-ups
/// are harmless.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Adds a waker, once.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    /// Moves all wakers to `to_wake`, to be woken after the lock is released.
    pub(crate) fn take_into(&mut self, to_wake: &mut Self) {
        to_wake.0.append(&mut self.0);
    }

    /// Moves one waker to `to_wake`, to be woken after the lock is released.
    pub(crate) fn take_one_into(waiting: &mut Option<Waker>, to_wake: &mut Self) {
        to_wake.0.extend(waiting.take());
    }

    /// Reserves capacity for `tasks` more wakers.
    pub(crate) fn reserve(&mut self, tasks: usize) {
        self.0.reserve(tasks);
    }

    /// Wakes all tasks. No lock may be held, because a waker may run any code.
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}
