//! The calls that wait for a key, and the one among them that runs the timer.

use std::{collections::VecDeque, task::Waker};

/// Identifies a waiting future.
pub(crate) type Ticket = u64;

/// The `get` futures that found no key, in order of arrival.
///
/// Delayed keys need no background task: one of the waiting futures, the **timekeeper**, sleeps until the earliest delay
/// ends. Without a waiting future no timer is needed.
///
/// Invariants, after each call of `WorkQueue`:
/// - As many futures are woken and not yet polled as keys are queued, unless no more futures wait.
/// - While a future waits and a key is delayed, a timekeeper exists. It sleeps no longer than the earliest delay, or was
///   woken to set its timer.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    listed: VecDeque<(Ticket, Waker)>,
    /// Futures that were removed from the list to be woken and were neither polled nor dropped since.
    woken: usize,
    last_ticket: Ticket,
    timekeeper: Option<Timekeeper>,
}

#[derive(Debug, Clone, Copy)]
struct Timekeeper {
    ticket: Ticket,
    at_nanos: u64,
}

impl Waiters {
    /// Removes a future, because it was polled or dropped. Returns its waker, to be dropped after the queue is unlocked: dropping
    /// the last waker of a task can drop the task.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        self.timekeeper = self.timekeeper.filter(|timekeeper| timekeeper.ticket != ticket);
        let listed = self.position(ticket).and_then(|position| self.listed.remove(position));
        self.woken = self.woken.saturating_sub(usize::from(listed.is_none()));
        listed.map(|(_, waker)| waker)
    }

    /// Adds a future that found no key. Returns its ticket, and the time until which it has to sleep if it becomes the
    /// timekeeper.
    pub(crate) fn wait(&mut self, waker: &Waker, next_at_nanos: Option<u64>) -> (Ticket, Option<u64>) {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        self.listed.push_back((ticket, waker.clone()));
        let sleep_until_nanos = next_at_nanos.filter(|_| self.timekeeper.is_none());
        if let Some(at_nanos) = sleep_until_nanos {
            self.timekeeper = Some(Timekeeper { ticket, at_nanos });
        }
        (ticket, sleep_until_nanos)
    }

    /// Collects the wakers of the futures that can take one of `queued` keys.
    pub(crate) fn wake_for_keys(&mut self, queued: usize, wakers: &mut Vec<Waker>) {
        while self.woken < queued
            && let Some((_, waker)) = self.listed.pop_front()
        {
            self.woken += 1;
            wakers.push(waker);
        }
    }

    /// Collects the waker of the timekeeper if it would sleep past `next_at_nanos`, or of a new timekeeper.
    pub(crate) fn wake_timekeeper(&mut self, next_at_nanos: u64, wakers: &mut Vec<Waker>) {
        let ticket = match self.timekeeper {
            Some(timekeeper) if timekeeper.at_nanos <= next_at_nanos => return,
            Some(timekeeper) => Some(timekeeper.ticket),
            None => self.listed.front().map(|(ticket, _)| *ticket),
        };
        let Some(ticket) = ticket else { return };
        self.timekeeper = Some(Timekeeper { ticket, at_nanos: next_at_nanos });
        // A timekeeper that is not listed was woken before and sets its timer when it is polled.
        if let Some(position) = self.position(ticket) {
            wakers.push(self.listed[position].1.clone());
        }
    }

    /// Collects the wakers of all futures.
    pub(crate) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        self.woken += self.listed.len();
        wakers.extend(self.listed.drain(..).map(|(_, waker)| waker));
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.listed.iter().position(|(listed, _)| *listed == ticket)
    }
}
