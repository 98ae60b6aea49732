//! The elector: what to do next, given the time and what came of the last request.

use std::time::Duration;

use super::{record::LeaseRecord, timing::Timing};

/// The lease as it was read or written: what it says, and its resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// What it says.
    pub record: LeaseRecord,
    /// The version a write must name.
    pub resource_version: String,
}

/// What to do next. Requests are one at a time: the next action comes when the outcome of this one went in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the lease.
    Read,
    /// Create the lease; it must not exist.
    Create(LeaseRecord),
    /// Write the lease over this version, and over no other.
    Update {
        /// What to write.
        record: LeaseRecord,
        /// The version to write over.
        over: String,
    },
    /// Nothing before this time.
    WaitUntil(Duration),
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is no lease.
    Absent,
    /// The lease was read.
    Read(Observed),
    /// The lease was written, and is this now.
    Written(Observed),
    /// Somebody else wrote first: the write did not happen.
    Conflict,
    /// Nobody knows whether it happened: an error, a timeout.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    Read,
    Write { sent_at: Duration },
}

/// Decides when to read, write and wait, and whether this replica leads.
///
/// Times are this replica's own monotonic clock, counted from anywhere; they never go back.
#[derive(Debug)]
pub struct Elector {
    identity: String,
    timing: Timing,
    /// The lease as last seen, and when it was first seen like that.
    seen: Option<(Observed, Duration)>,
    /// When the last renewal that succeeded was sent, while this replica holds the lease.
    renewed_at: Option<Duration>,
    in_flight: Option<Request>,
    next_try: Duration,
    is_released: bool,
}

impl Elector {
    /// An elector for a replica named `identity`, which no other replica may be named.
    pub fn new(identity: impl Into<String>, timing: Timing) -> Self {
        Self {
            identity: identity.into(),
            timing,
            seen: None,
            renewed_at: None,
            in_flight: None,
            next_try: Duration::ZERO,
            is_released: false,
        }
    }

    /// This replica leads at `now`, and no other does.
    pub fn is_leader(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|end| now < end)
    }

    /// When leading ends unless a renewal succeeds before.
    pub fn leads_until(&self) -> Option<Duration> {
        self.renewed_at.map(|sent| sent + self.timing.renew_deadline())
    }

    /// Who holds the lease as far as this replica knows; empty when nobody does.
    pub fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", |(seen, _)| &seen.record.holder)
    }

    /// The number of the present leadership: it grows with every change of holder. A fencing token for writes.
    pub fn term(&self) -> u32 {
        self.seen.as_ref().map_or(0, |(seen, _)| seen.record.transitions)
    }

    /// What to do at `now`. The outcome of a request goes to [`Elector::outcome`] before this is asked again.
    pub fn next(&mut self, now: Duration) -> Action {
        self.step_down_if_late(now);
        if self.is_released {
            return Action::WaitUntil(Duration::MAX);
        }
        if now < self.next_try {
            // Leading may end before the next try: whoever waits must wake up for it.
            return Action::WaitUntil(self.leads_until().map_or(self.next_try, |end| end.min(self.next_try)));
        }
        let Some((seen, since)) = &self.seen else {
            self.in_flight = Some(Request::Read);
            return Action::Read;
        };
        if self.may_write(seen, *since, now) {
            let (record, over) = (self.record_after(&seen.record), seen.resource_version.clone());
            self.in_flight = Some(Request::Write { sent_at: now });
            return Action::Update { record, over };
        }
        self.in_flight = Some(Request::Read);
        Action::Read
    }

    /// Takes in what came of the request [`Elector::next`] asked for, at `now`.
    pub fn outcome(&mut self, now: Duration, outcome: Outcome) -> Option<Action> {
        let request = self.in_flight.take()?;
        self.next_try = now + self.timing.retry_period();
        match (request, outcome) {
            (Request::Write { sent_at }, Outcome::Written(written)) => {
                let is_mine = written.record.holder == self.identity;
                self.renewed_at = is_mine.then_some(sent_at);
                self.see(written, now);
            }
            (Request::Read, Outcome::Absent) => {
                let record = self.record_after(&LeaseRecord::default());
                self.in_flight = Some(Request::Write { sent_at: now });
                return Some(Action::Create(LeaseRecord { transitions: 0, ..record }));
            }
            (Request::Read, Outcome::Read(read)) => {
                if read.record.holder != self.identity {
                    // Somebody else wrote: whatever was renewed before is over.
                    self.renewed_at = None;
                }
                self.see(read, now);
                // What may be written is written at once, without waiting for the next round.
                if self.seen.as_ref().is_some_and(|(seen, since)| self.may_write(seen, *since, now)) {
                    self.next_try = now;
                }
            }
            // The write did not happen, or the lease is gone: look before doing anything else, and look at once.
            (Request::Write { .. }, Outcome::Conflict | Outcome::Absent) => {
                self.seen_is_old();
                self.next_try = now;
            }
            // It may have happened: what is known of the lease is worth nothing.
            (Request::Write { .. }, Outcome::Failed | Outcome::Read(_)) => self.seen_is_old(),
            (Request::Read, Outcome::Failed | Outcome::Conflict | Outcome::Written(_)) => {}
        }
        self.step_down_if_late(now);
        None
    }

    /// Gives the lease up. Call it when the work has ended, not before: others may start at once. The answer is the write to
    /// send, or none if this replica does not hold the lease.
    pub fn release(&mut self, now: Duration) -> Option<Action> {
        let is_held = self.is_leader(now);
        self.renewed_at = None;
        self.is_released = true;
        let (seen, _) = self.seen.as_ref().filter(|_| is_held)?;
        // A second instead of none: a lease that lasts no time is invalid, and old clients wait for it.
        let record = LeaseRecord {
            holder: String::new(),
            lease_duration: Duration::from_secs(1),
            renewals: seen.record.renewals + 1,
            transitions: seen.record.transitions,
        };
        Some(Action::Update { record, over: seen.resource_version.clone() })
    }

    /// The lease is this replica's, nobody's, or has stood still for as long as whoever wrote it asked for.
    fn may_write(&self, seen: &Observed, since: Duration, now: Duration) -> bool {
        let patience = seen.record.lease_duration.max(self.timing.lease_duration());
        seen.record.holder == self.identity || seen.record.is_free() || now.saturating_sub(since) >= patience
    }

    /// Sees the lease; the time it is first seen like this is what standing still is counted from.
    fn see(&mut self, observed: Observed, now: Duration) {
        let is_same = self.seen.as_ref().is_some_and(|(seen, _)| {
            seen.record == observed.record && seen.resource_version == observed.resource_version
        });
        if !is_same {
            self.seen = Some((observed, now));
        }
    }

    /// The version is not to be written over any more; a read must come first.
    fn seen_is_old(&mut self) {
        self.seen = None;
    }

    fn step_down_if_late(&mut self, now: Duration) {
        if self.leads_until().is_some_and(|end| now >= end) {
            self.renewed_at = None;
        }
    }

    fn record_after(&self, last: &LeaseRecord) -> LeaseRecord {
        let is_mine = last.holder == self.identity;
        LeaseRecord {
            holder: self.identity.clone(),
            lease_duration: self.timing.lease_duration(),
            transitions: if is_mine { last.transitions } else { last.transitions.saturating_add(1) },
            renewals: last.renewals.wrapping_add(1),
        }
    }
}
