//! Who waits for a key, and which of them watches the clock.

use std::{collections::VecDeque, task::Waker};

/// Identifies one waiting `get`.
pub(crate) type Ticket = u64;

/// The `get`s that found nothing to do, in order of arrival.
///
/// There is no background task that moves delayed keys into line: one of the waiting `get`s, the **keeper**,
/// sleeps until the earliest delay. If nobody waits, nobody needs a timer.
///
/// Invariants: a waiter that was taken out to be woken either takes a key, comes back, or passes the wake-up on
/// when it is dropped; while anyone waits and any key is delayed, there is a keeper that sleeps no longer than
/// until the earliest delay, or somebody has been woken to become it.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    queue: VecDeque<(Ticket, Waker)>,
    tickets: Ticket,
    keeper: Option<Keeper>,
}

#[derive(Debug, Clone, Copy)]
struct Keeper {
    ticket: Ticket,
    /// When its timer ends.
    at: u64,
}

impl Waiters {
    pub(crate) fn new_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    /// Notes that the holder of `ticket` waits, or waits with another waker than before.
    pub(crate) fn wait(&mut self, ticket: Ticket, waker: &Waker) {
        match self.queue.iter_mut().find(|(waiting, _)| *waiting == ticket) {
            Some((_, known)) => known.clone_from(waker),
            None => self.queue.push_back((ticket, waker.clone())),
        }
    }

    /// Makes the holder of `ticket` the keeper if there is none, and says whether it is the keeper now.
    pub(crate) fn keep_time(&mut self, ticket: Ticket, at: u64) -> bool {
        let is_keeper = self.keeper.is_none_or(|keeper| keeper.ticket == ticket);
        if is_keeper {
            self.keeper = Some(Keeper { ticket, at });
        }
        is_keeper
    }

    /// Notes that the holder of `ticket` watches no clock: nothing is delayed. Whoever waits when something is again will be
    /// woken for it.
    pub(crate) fn stop_keeping_time(&mut self, ticket: Ticket) {
        self.keeper = self.keeper.filter(|keeper| keeper.ticket != ticket);
    }

    /// Takes a waiter off the list for good. True if it had been woken for a key it did not take.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> bool {
        self.stop_keeping_time(ticket);
        match self.queue.iter().position(|(waiting, _)| *waiting == ticket) {
            Some(place) => {
                self.queue.remove(place);
                false
            }
            None => true,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes out whoever is to be woken for `keys` newly queued keys.
    pub(crate) fn take(&mut self, keys: usize, to_wake: &mut Wakes) {
        for _ in 0..keys.min(self.queue.len()) {
            to_wake.extend(self.queue.pop_front().map(|(_, waker)| waker));
        }
    }

    /// Makes sure somebody sleeps until `next_at` at the latest.
    pub(crate) fn ensure_keeper(&mut self, next_at: Option<u64>, to_wake: &mut Wakes) {
        let Some(next_at) = next_at else { return };
        let waiter = match self.keeper {
            None => self.queue.front(),
            Some(keeper) if next_at < keeper.at => {
                // Not listed means woken already: it will look at the time by itself.
                self.queue.iter().find(|(ticket, _)| *ticket == keeper.ticket)
            }
            Some(_) => None,
        };
        to_wake.extend(waiter.map(|(_, waker)| waker.clone()));
    }

    /// Takes everybody out.
    pub(crate) fn take_all(&mut self, to_wake: &mut Wakes) {
        self.take(self.queue.len(), to_wake);
    }
}

/// Wakers to call once the lock is released. Almost always none or one.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    first: Option<Waker>,
    rest: Vec<Waker>,
}

impl Extend<Waker> for Wakes {
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        for waker in wakers {
            match &self.first {
                None => self.first = Some(waker),
                Some(_) => self.rest.push(waker),
            }
        }
    }
}

impl Wakes {
    #[inline]
    pub(crate) fn wake(self) {
        if let Some(first) = self.first {
            first.wake();
            self.rest.into_iter().for_each(Waker::wake);
        }
    }
}
