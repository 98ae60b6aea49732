//! The leader election state machine: time and request outcomes in, requests and waits out.

use std::time::Duration;

use super::{record::LeaseRecord, timing::Timing};
use crate::time::Moment;

/// A lease as read or written: its content, uid and resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedLease {
    /// The content of the lease.
    pub(super) record: LeaseRecord,
    /// The uid of the object. A lease that was deleted and created again has a different uid.
    pub(super) uid: String,
    /// The resourceVersion that a write must name.
    pub(super) resource_version: String,
}

/// The next step of the driver. Only one request is in flight: pass its outcome to the elector before
/// requesting the next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ElectorAction {
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
pub(super) enum RequestOutcome {
    /// The lease does not exist.
    Absent,
    /// The lease was read.
    Read(ObservedLease),
    /// The lease was written; this is its new state.
    Written(ObservedLease),
    /// Another writer was first, and the write was rejected.
    Conflict,
    /// The outcome is unknown, such as after an error or a timeout.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentRequest {
    Read,
    Create { sent_at: Duration },
    Update { sent_at: Duration },
}

/// The last observation of the lease.
#[derive(Debug)]
struct Observation {
    lease: ObservedLease,
    /// The time since which the lease has been unchanged, or absent.
    since: Duration,
    /// Whether the lease existed when it was last read.
    exists: bool,
    /// Whether the observed resourceVersion may still be overwritten.
    is_current: bool,
}

impl Observation {
    fn has_same_content(&self, other: &ObservedLease) -> bool {
        (&self.lease.record, &self.lease.uid) == (&other.record, &other.uid)
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
pub(super) struct Elector {
    identity: String,
    timing: Timing,
    random: fastrand::Rng,
    last: Option<Observation>,
    /// The time at which the last successful renewal was sent, while this replica holds the lease.
    renewed_at: Option<Duration>,
    in_flight: Option<SentRequest>,
    next_try: Duration,
    /// Whether a write was sent at some time, so that this replica may hold the lease.
    may_hold: bool,
    /// Whether a request has been sent without a wait since the last wait. At most one is, so that
    /// inconsistent responses cannot cause a hot loop.
    sent_immediately: bool,
    phase: Phase,
}

impl Elector {
    /// Creates an elector for the replica named `identity`, which must be unique. `seed` spreads the attempts
    /// of waiting replicas over time.
    pub(super) fn new(identity: impl Into<String>, timing: Timing, seed: u64) -> Self {
        Self {
            identity: identity.into(),
            timing,
            random: fastrand::Rng::with_seed(seed),
            last: None,
            renewed_at: None,
            in_flight: None,
            next_try: Duration::ZERO,
            may_hold: false,
            sent_immediately: false,
            phase: Phase::Contending,
        }
    }

    /// Returns whether this replica, and no other, leads at `now`.
    pub(super) fn is_leader(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|end| now < end)
    }

    /// Returns the time at which leadership ends unless a renewal succeeds earlier.
    pub(super) fn leads_until(&self) -> Option<Duration> {
        self.renewed_at.map(|sent| sent + self.timing.renew_deadline())
    }

    /// Returns the last observed holder of the lease; empty if the lease is free.
    pub(super) fn holder(&self) -> &str {
        self.last.as_ref().filter(|last| last.exists).map_or("", |last| &last.lease.record.holder)
    }

    /// Returns the number of the current term, which increases with every change of holder. It can serve as a
    /// fencing token for writes.
    ///
    /// The number is the lease's `leaseTransitions`. It restarts if the lease is deleted and no replica that
    /// had observed it is left.
    pub(super) fn term(&self) -> u32 {
        self.last.as_ref().map_or(0, |last| last.lease.record.transitions)
    }

    /// Returns the next action at `now`. Pass the outcome of a request to [`Elector::outcome`] before calling
    /// this again.
    pub(super) fn next(&mut self, now: Moment) -> ElectorAction {
        debug_assert!(self.in_flight.is_none(), "the outcome of the last request must be processed first");
        self.step_down_if_expired(now.at);
        if self.phase == Phase::Done {
            return ElectorAction::Done;
        }
        if now.at < self.next_try {
            self.sent_immediately = false;
            // Leadership may end before the next attempt, and waiters must be woken for that.
            return ElectorAction::WaitUntil(
                self.leads_until().map_or(self.next_try, |end| end.min(self.next_try)),
            );
        }
        let Some(last) = self.last.as_ref().filter(|last| last.exists && last.is_current) else {
            return self.read();
        };
        let (current, over) = (&last.lease.record, last.lease.resource_version.clone());
        let is_mine = current.holder == self.identity;
        let record = match self.phase {
            Phase::Contending if self.may_write(last, now.at) => {
                current.held_by(&self.identity, &self.timing, now.date)
            }
            Phase::Contending => return self.read(),
            Phase::Releasing if is_mine => current.released(now.date),
            Phase::Releasing | Phase::Done => {
                self.phase = Phase::Done;
                return ElectorAction::Done;
            }
        };
        self.may_hold = true;
        self.in_flight = Some(SentRequest::Update { sent_at: now.at });
        ElectorAction::Update { record, over }
    }

    /// Processes the outcome of the request returned by [`Elector::next`]. Returns a request if one must be
    /// sent immediately.
    pub(super) fn outcome(&mut self, now: Moment, outcome: RequestOutcome) -> Option<ElectorAction> {
        let request = self.in_flight.take()?;
        self.next_try = now.at + self.retry_delay();
        let mut follow_up = None;
        match (request, outcome) {
            (SentRequest::Read, RequestOutcome::Read(read)) => {
                if read.record.holder != self.identity {
                    // Another replica wrote the lease, so earlier renewals no longer count.
                    self.renewed_at = None;
                }
                self.observe(read, now.at);
                // A write that is allowed is sent immediately, without waiting for the next period.
                let may_write = self.last.as_ref().is_some_and(|last| self.may_write(last, now.at));
                if may_write || self.phase == Phase::Releasing {
                    self.next_try = now.at;
                }
            }
            (SentRequest::Read, RequestOutcome::Absent) => follow_up = self.observe_absence(now),
            (
                SentRequest::Create { sent_at } | SentRequest::Update { sent_at },
                RequestOutcome::Written(written),
            ) => {
                let is_mine = written.record.holder == self.identity;
                self.renewed_at = Some(sent_at).filter(|_| is_mine && self.phase == Phase::Contending);
                if self.phase == Phase::Releasing {
                    self.phase = Phase::Done;
                }
                self.observe(written, now.at);
            }
            // The write did not happen: read the lease immediately.
            (SentRequest::Create { .. } | SentRequest::Update { .. }, RequestOutcome::Conflict)
            | (SentRequest::Update { .. }, RequestOutcome::Absent) => {
                self.read_before_write();
                if !self.sent_immediately {
                    self.sent_immediately = true;
                    self.next_try = now.at;
                }
            }
            // The write may have happened: read the lease, but only after the usual wait.
            (SentRequest::Create { .. } | SentRequest::Update { .. }, _) => self.read_before_write(),
            (
                SentRequest::Read,
                RequestOutcome::Failed | RequestOutcome::Conflict | RequestOutcome::Written(_),
            ) => {}
        }
        self.step_down_if_expired(now.at);
        follow_up
    }

    /// Starts the release of the lease if this replica holds it. [`next`](Self::next) returns the steps, up
    /// to [`ElectorAction::Done`].
    ///
    /// Call this only after the work has ended, because another replica may start immediately. From this call
    /// on, this replica neither leads nor competes for the lease.
    pub(super) fn release(&mut self) {
        if self.in_flight.take().is_some() {
            // The outcome of the request in flight will not be reported.
            self.read_before_write();
        }
        self.renewed_at = None;
        self.next_try = Duration::ZERO;
        self.phase = if self.may_hold { Phase::Releasing } else { Phase::Done };
    }

    /// Handles an absent lease. A replica may have acquired the lease just before its deletion, so every
    /// replica that had observed the lease waits a full lease duration, except the leader. The last observed
    /// content does not count: the holder may have changed since.
    fn observe_absence(&mut self, now: Moment) -> Option<ElectorAction> {
        if self.phase == Phase::Releasing {
            self.phase = Phase::Done;
            return None;
        }
        if let Some(last) = &mut self.last {
            if last.exists {
                (last.exists, last.since) = (false, now.at);
            }
            last.is_current = true;
        }
        let may_create =
            self.is_leader(now.at) || self.last.as_ref().is_none_or(|last| self.has_expired(last, now.at));
        if !may_create {
            return None;
        }
        let nothing = LeaseRecord::default();
        let current = self.last.as_ref().map_or(&nothing, |last| &last.lease.record);
        let mut record = current.held_by(&self.identity, &self.timing, now.date);
        if self.last.is_none() {
            record.transitions = 0;
        }
        self.may_hold = true;
        self.in_flight = Some(SentRequest::Create { sent_at: now.at });
        Some(ElectorAction::Create(record))
    }

    /// Returns whether this replica may write the lease: because it holds the lease, the lease is free, or the lease has
    /// been unchanged for the duration that its writer requested.
    fn may_write(&self, last: &Observation, now: Duration) -> bool {
        let record = &last.lease.record;
        record.holder == self.identity || record.is_free() || self.has_expired(last, now)
    }

    fn has_expired(&self, last: &Observation, now: Duration) -> bool {
        let duration = last.lease.record.lease_duration.max(self.timing.lease_duration());
        now.saturating_sub(last.since) >= duration
    }

    /// Records an observation of the lease. Expiry is measured from the first observation of this content; a
    /// change of other fields, which changes the resourceVersion, does not count as a renewal.
    fn observe(&mut self, lease: ObservedLease, now: Duration) {
        let since = match &self.last {
            Some(last) if last.exists && last.has_same_content(&lease) => last.since,
            _ => now,
        };
        self.last = Some(Observation { lease, since, exists: true, is_current: true });
    }

    fn read(&mut self) -> ElectorAction {
        self.in_flight = Some(SentRequest::Read);
        ElectorAction::Read
    }

    /// Marks the observed resourceVersion as stale, so that a read precedes the next write.
    fn read_before_write(&mut self) {
        if let Some(last) = &mut self.last {
            last.is_current = false;
        }
    }

    fn step_down_if_expired(&mut self, now: Duration) {
        if self.leads_until().is_some_and(|end| now >= end) {
            self.renewed_at = None;
        }
    }

    /// Returns the wait until the next attempt: the retry period for the leader; slightly less, with jitter,
    /// for the other replicas.
    fn retry_delay(&mut self) -> Duration {
        let period = self.timing.retry_period();
        if self.renewed_at.is_some() { period } else { period.mul_f64(0.75 + self.random.f64() / 4.0) }
    }
}

#[cfg(test)]
mod tests;
