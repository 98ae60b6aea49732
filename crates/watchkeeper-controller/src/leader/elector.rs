//! The leader election state machine: time and request outcomes in, requests and waits out.

use std::time::Duration;

use super::{record::LeaseRecord, timing::Timing};
use crate::time::Moment;

/// A lease as read or written: its content, uid and resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The content of the lease.
    pub record: LeaseRecord,
    /// The uid of the object. A lease that was deleted and created again has a different uid.
    pub uid: String,
    /// The resourceVersion that a write must name.
    pub resource_version: String,
}

/// The next step of the driver. Only one request is in flight: pass its outcome to the elector before
/// requesting the next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the lease.
    Read,
    /// Create the lease, which must not exist.
    Create(LeaseRecord),
    /// Update the lease if its resourceVersion is still `over`.
    Update {
        /// The content to write.
        record: LeaseRecord,
        /// The resourceVersion to overwrite.
        over: String,
    },
    /// Wait until this time.
    WaitUntil(Duration),
    /// Stop: the lease was released, or this replica does not hold it.
    Done,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The lease does not exist.
    Absent,
    /// The lease was read.
    Read(Observed),
    /// The lease was written; this is its new state.
    Written(Observed),
    /// Another writer was first, and the write was rejected.
    Conflict,
    /// The outcome is unknown, such as after an error or a timeout.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Read,
    Create { sent_at: Duration },
    Update { sent_at: Duration },
}

/// The last observation of the lease.
#[derive(Debug)]
struct Seen {
    observed: Observed,
    /// The time since which the lease has been unchanged, or absent.
    since: Duration,
    /// Whether the lease existed when it was last read.
    is_there: bool,
    /// Whether the observed resourceVersion may still be overwritten.
    is_current: bool,
}

impl Seen {
    fn says_the_same_as(&self, other: &Observed) -> bool {
        (&self.observed.record, &self.observed.uid) == (&other.record, &other.uid)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Contending,
    Releasing,
    Done,
}

/// A state machine that decides when to read, write and wait, and whether this replica leads.
///
/// Times are readings of this replica's monotonic clock from an arbitrary origin; they never decrease.
#[derive(Debug)]
pub struct Elector {
    identity: String,
    timing: Timing,
    random: fastrand::Rng,
    seen: Option<Seen>,
    /// The time at which the last successful renewal was sent, while this replica holds the lease.
    renewed_at: Option<Duration>,
    in_flight: Option<Request>,
    next_try: Duration,
    /// Whether a write was sent at some time, so that this replica may hold the lease.
    may_hold: bool,
    /// Whether a request has been sent without a wait since the last wait. At most one is, so that
    /// inconsistent responses cannot cause a hot loop.
    has_rushed: bool,
    phase: Phase,
}

impl Elector {
    /// Creates an elector for the replica named `identity`, which must be unique. `seed` spreads the attempts
    /// of waiting replicas over time.
    pub fn new(identity: impl Into<String>, timing: Timing, seed: u64) -> Self {
        Self {
            identity: identity.into(),
            timing,
            random: fastrand::Rng::with_seed(seed),
            seen: None,
            renewed_at: None,
            in_flight: None,
            next_try: Duration::ZERO,
            may_hold: false,
            has_rushed: false,
            phase: Phase::Contending,
        }
    }

    /// Returns whether this replica, and no other, leads at `now`.
    pub fn is_leader(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|end| now < end)
    }

    /// Returns the time at which leadership ends unless a renewal succeeds earlier.
    pub fn leads_until(&self) -> Option<Duration> {
        self.renewed_at.map(|sent| sent + self.timing.renew_deadline())
    }

    /// Returns the identity of this replica.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the last observed holder of the lease; empty if the lease is free.
    pub fn holder(&self) -> &str {
        self.seen.as_ref().filter(|seen| seen.is_there).map_or("", |seen| &seen.observed.record.holder)
    }

    /// Returns the number of the current term, which increases with every change of holder. It can serve as a
    /// fencing token for writes.
    ///
    /// The number is the lease's `leaseTransitions`. It restarts if the lease is deleted and no replica that
    /// had observed it is left.
    pub fn term(&self) -> u32 {
        self.seen.as_ref().map_or(0, |seen| seen.observed.record.transitions)
    }

    /// Returns the next action at `now`. Pass the outcome of a request to [`Elector::outcome`] before calling
    /// this again.
    pub fn next(&mut self, now: Moment) -> Action {
        debug_assert!(self.in_flight.is_none(), "the outcome of the last request goes in first");
        self.step_down_if_late(now.at);
        if self.phase == Phase::Done {
            return Action::Done;
        }
        if now.at < self.next_try {
            self.has_rushed = false;
            // Leadership may end before the next attempt, and waiters must be woken for that.
            return Action::WaitUntil(self.leads_until().map_or(self.next_try, |end| end.min(self.next_try)));
        }
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.is_there && seen.is_current) else {
            return self.read();
        };
        let (last, over) = (&seen.observed.record, seen.observed.resource_version.clone());
        let is_mine = last.holder == self.identity;
        let record = match self.phase {
            Phase::Contending if self.may_write(seen, now.at) => {
                last.held_by(&self.identity, &self.timing, now.date)
            }
            Phase::Contending => return self.read(),
            Phase::Releasing if is_mine => last.released(now.date),
            Phase::Releasing | Phase::Done => {
                self.phase = Phase::Done;
                return Action::Done;
            }
        };
        self.may_hold = true;
        self.in_flight = Some(Request::Update { sent_at: now.at });
        Action::Update { record, over }
    }

    /// Processes the outcome of the request returned by [`Elector::next`]. Returns a request if one must be
    /// sent immediately.
    pub fn outcome(&mut self, now: Moment, outcome: Outcome) -> Option<Action> {
        let request = self.in_flight.take()?;
        self.next_try = now.at + self.pause();
        let mut follow_up = None;
        match (request, outcome) {
            (Request::Read, Outcome::Read(read)) => {
                if read.record.holder != self.identity {
                    // Another replica wrote the lease, so earlier renewals no longer count.
                    self.renewed_at = None;
                }
                self.see(read, now.at);
                // A write that is allowed is sent immediately, without waiting for the next period.
                let may_write = self.seen.as_ref().is_some_and(|seen| self.may_write(seen, now.at));
                if may_write || self.phase == Phase::Releasing {
                    self.next_try = now.at;
                }
            }
            (Request::Read, Outcome::Absent) => follow_up = self.see_nothing(now),
            (Request::Create { sent_at } | Request::Update { sent_at }, Outcome::Written(written)) => {
                let is_mine = written.record.holder == self.identity;
                self.renewed_at = Some(sent_at).filter(|_| is_mine && self.phase == Phase::Contending);
                if self.phase == Phase::Releasing {
                    self.phase = Phase::Done;
                }
                self.see(written, now.at);
            }
            // The write did not happen: read the lease immediately.
            (Request::Create { .. } | Request::Update { .. }, Outcome::Conflict)
            | (Request::Update { .. }, Outcome::Absent) => {
                self.look_before_writing();
                if !self.has_rushed {
                    self.has_rushed = true;
                    self.next_try = now.at;
                }
            }
            // The write may have happened: read the lease, but only after the usual wait.
            (Request::Create { .. } | Request::Update { .. }, _) => self.look_before_writing(),
            (Request::Read, Outcome::Failed | Outcome::Conflict | Outcome::Written(_)) => {}
        }
        self.step_down_if_late(now.at);
        follow_up
    }

    /// Starts the release of the lease if this replica holds it. [`next`](Self::next) returns the steps, up
    /// to [`Action::Done`].
    ///
    /// Call this only after the work has ended, because another replica may start immediately. From this call
    /// on, this replica neither leads nor competes for the lease.
    pub fn release(&mut self) {
        if self.in_flight.take().is_some() {
            // The outcome of the request in flight will not be reported.
            self.look_before_writing();
        }
        self.renewed_at = None;
        self.next_try = Duration::ZERO;
        self.phase = if self.may_hold { Phase::Releasing } else { Phase::Done };
    }

    /// Handles an absent lease. A replica may have acquired the lease just before its deletion, so every
    /// replica that had observed the lease waits a full lease duration, except the leader. The last observed
    /// content does not count: the holder may have changed since.
    fn see_nothing(&mut self, now: Moment) -> Option<Action> {
        if self.phase == Phase::Releasing {
            self.phase = Phase::Done;
            return None;
        }
        if let Some(seen) = &mut self.seen {
            if seen.is_there {
                (seen.is_there, seen.since) = (false, now.at);
            }
            seen.is_current = true;
        }
        let may_create = self.is_leader(now.at)
            || self.seen.as_ref().is_none_or(|seen| self.has_stood_still(seen, now.at));
        if !may_create {
            return None;
        }
        let nothing = LeaseRecord::default();
        let last = self.seen.as_ref().map_or(&nothing, |seen| &seen.observed.record);
        let mut record = last.held_by(&self.identity, &self.timing, now.date);
        if self.seen.is_none() {
            record.transitions = 0;
        }
        self.may_hold = true;
        self.in_flight = Some(Request::Create { sent_at: now.at });
        Some(Action::Create(record))
    }

    /// Returns whether the lease may be written: this replica holds it, it is free, or it has been unchanged
    /// for the duration that its writer requested.
    fn may_write(&self, seen: &Seen, now: Duration) -> bool {
        let record = &seen.observed.record;
        record.holder == self.identity || record.is_free() || self.has_stood_still(seen, now)
    }

    fn has_stood_still(&self, seen: &Seen, now: Duration) -> bool {
        let patience = seen.observed.record.lease_duration.max(self.timing.lease_duration());
        now.saturating_sub(seen.since) >= patience
    }

    /// Records an observation of the lease. Expiry is measured from the first observation of this content; a
    /// change of other fields, which changes the resourceVersion, does not count as a renewal.
    fn see(&mut self, observed: Observed, now: Duration) {
        let since = match &self.seen {
            Some(seen) if seen.is_there && seen.says_the_same_as(&observed) => seen.since,
            _ => now,
        };
        self.seen = Some(Seen { observed, since, is_there: true, is_current: true });
    }

    fn read(&mut self) -> Action {
        self.in_flight = Some(Request::Read);
        Action::Read
    }

    /// Marks the observed resourceVersion as stale, so that a read precedes the next write.
    fn look_before_writing(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.is_current = false;
        }
    }

    fn step_down_if_late(&mut self, now: Duration) {
        if self.leads_until().is_some_and(|end| now >= end) {
            self.renewed_at = None;
        }
    }

    /// Returns the wait until the next attempt: the retry period for the leader; slightly less, with jitter,
    /// for the other replicas.
    fn pause(&mut self) -> Duration {
        let period = self.timing.retry_period();
        if self.renewed_at.is_some() { period } else { period.mul_f64(0.75 + self.random.f64() / 4.0) }
    }
}
