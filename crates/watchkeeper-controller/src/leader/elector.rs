//! The elector: what to do next, given the time and what came of the last request.

use std::time::Duration;

use super::{record::LeaseRecord, timing::Timing};
use crate::time::Moment;

/// The lease as it was read or written: what it says, which one it is, and its resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// What it says.
    pub record: LeaseRecord,
    /// Which object it is: one that was deleted and made again is another.
    pub uid: String,
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
    /// Nothing any more: the lease was let go, or is not this replica's to let go.
    Done,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Read,
    Create { sent_at: Duration },
    Update { sent_at: Duration },
}

/// What is known of the lease.
#[derive(Debug)]
struct Seen {
    observed: Observed,
    /// When it was first seen like that, or not seen any more.
    since: Duration,
    /// It was there when it was last looked for.
    is_there: bool,
    /// Nothing happened since that would make its version one not to write over.
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

/// Decides when to read, write and wait, and whether this replica leads.
///
/// Times are this replica's own monotonic clock, counted from anywhere; they never go back.
#[derive(Debug)]
pub struct Elector {
    identity: String,
    timing: Timing,
    random: fastrand::Rng,
    seen: Option<Seen>,
    /// When the last renewal that succeeded was sent, while this replica holds the lease.
    renewed_at: Option<Duration>,
    in_flight: Option<Request>,
    next_try: Duration,
    /// A write was sent once, so the lease may be this replica's.
    may_hold: bool,
    /// A request was sent without waiting since the last wait. No second one is, so that a server at odds with itself is not
    /// asked in a circle.
    has_rushed: bool,
    phase: Phase,
}

impl Elector {
    /// An elector for a replica named `identity`, which no other replica may be named. The seed spreads those who wait to
    /// lead, so that they do not all ask at once.
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

    /// This replica leads at `now`, and no other does.
    pub fn is_leader(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|end| now < end)
    }

    /// When leading ends unless a renewal succeeds before.
    pub fn leads_until(&self) -> Option<Duration> {
        self.renewed_at.map(|sent| sent + self.timing.renew_deadline())
    }

    /// The name of this replica.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Who holds the lease as far as this replica knows; empty when nobody does.
    pub fn holder(&self) -> &str {
        self.seen.as_ref().filter(|seen| seen.is_there).map_or("", |seen| &seen.observed.record.holder)
    }

    /// The number of the present leadership: it grows with every change of holder. A fencing token for writes.
    ///
    /// It is the lease's count of its holders, so it starts again when the lease was deleted and nobody who had seen it
    /// is left.
    pub fn term(&self) -> u32 {
        self.seen.as_ref().map_or(0, |seen| seen.observed.record.transitions)
    }

    /// What to do at `now`. The outcome of a request goes to [`Elector::outcome`] before this is asked again.
    pub fn next(&mut self, now: Moment) -> Action {
        debug_assert!(self.in_flight.is_none(), "the outcome of the last request goes in first");
        self.step_down_if_late(now.at);
        if self.phase == Phase::Done {
            return Action::Done;
        }
        if now.at < self.next_try {
            self.has_rushed = false;
            // Leading may end before the next try: whoever waits must wake up for it.
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

    /// Takes in what came of the request [`Elector::next`] asked for. The answer is a request to send at once, if there is
    /// one.
    pub fn outcome(&mut self, now: Moment, outcome: Outcome) -> Option<Action> {
        let request = self.in_flight.take()?;
        self.next_try = now.at + self.pause();
        let mut follow_up = None;
        match (request, outcome) {
            (Request::Read, Outcome::Read(read)) => {
                if read.record.holder != self.identity {
                    // Somebody else wrote: whatever was renewed before is over.
                    self.renewed_at = None;
                }
                self.see(read, now.at);
                // What may be written is written at once, without waiting for the next round.
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
            // The write did not happen: look, and look at once.
            (Request::Create { .. } | Request::Update { .. }, Outcome::Conflict)
            | (Request::Update { .. }, Outcome::Absent) => {
                self.look_before_writing();
                if !self.has_rushed {
                    self.has_rushed = true;
                    self.next_try = now.at;
                }
            }
            // It may have happened: look, but not at once.
            (Request::Create { .. } | Request::Update { .. }, _) => self.look_before_writing(),
            (Request::Read, Outcome::Failed | Outcome::Conflict | Outcome::Written(_)) => {}
        }
        self.step_down_if_late(now.at);
        follow_up
    }

    /// Gives the lease up, if this replica holds it: [`next`](Self::next) says how, until it says [`Action::Done`].
    ///
    /// Call it when the work has ended, not before: others may start at once. From here on this replica does not lead, and does
    /// not try to.
    pub fn release(&mut self) {
        if self.in_flight.take().is_some() {
            // What came of it will not be told any more.
            self.look_before_writing();
        }
        self.renewed_at = None;
        self.next_try = Duration::ZERO;
        self.phase = if self.may_hold { Phase::Releasing } else { Phase::Done };
    }

    /// The lease is not there. Whoever held it may have been told a moment ago that it does, so all who knew of the lease
    /// wait for as long as if it stood still, except the one who leads. What it last said does not count: it may have changed hands
    /// since.
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

    /// The lease is this replica's, nobody's, or has stood still for as long as whoever wrote it asked for.
    fn may_write(&self, seen: &Seen, now: Duration) -> bool {
        let record = &seen.observed.record;
        record.holder == self.identity || record.is_free() || self.has_stood_still(seen, now)
    }

    fn has_stood_still(&self, seen: &Seen, now: Duration) -> bool {
        let patience = seen.observed.record.lease_duration.max(self.timing.lease_duration());
        now.saturating_sub(seen.since) >= patience
    }

    /// Sees the lease. The time it first said this is what standing still is counted from; that somebody changed something
    /// else about it, and with that its version, is no sign of life.
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

    /// The version is not to be written over any more; a read must come first.
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

    /// How long until the next try: the period for who leads; a little less, each time another, for who waits to.
    fn pause(&mut self) -> Duration {
        let period = self.timing.retry_period();
        if self.renewed_at.is_some() { period } else { period.mul_f64(0.75 + self.random.f64() / 4.0) }
    }
}
