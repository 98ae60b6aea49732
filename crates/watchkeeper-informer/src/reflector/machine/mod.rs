//! The list-watch protocol as a state machine: what happened and the time go in, what to do next comes out.
//!
//! Nothing in here waits, asks, reads a clock or rolls dice of its own: times are durations since whenever the driver began,
//! and the random numbers come from a generator that is handed in.
//!
//! ```text
//!            ┌────────────── the wait is over ──────────────┐
//!            │                                              │
//!            ▼      refused, too often broken, too slow     │
//!   New ─▶ Initial ────────────────────────────▶ Listing    │
//!            │  the end of the initial events      │  last page
//!            │  (the stream goes on as the watch)  │        │
//!            ▼                                     ▼        │
//!          Watching ◀──────────────────────────────┘     Waiting
//!            │  ▲                                           ▲
//!      ended │  │ the server shares the history             │
//!            ▼  │                                           │
//!          Verifying ──▶ Listing, when it does not          │
//!      any of them ──── failed: what the classifier says ───┘
//! ```
//!
//! The rules that everything else follows from:
//!
//! * **The version to go on from** is that of the last list read whole, the last event applied or the last bookmark. The
//!   events a stream begins with are not in order and move it nowhere; only the bookmark that ends them does.
//! * **Never back in time.** A list is asked to be at least as new as that version. One that is older, or an event that is,
//!   is refused. Only a list that asked for the newest there is may be older: then the server's history was replaced,
//!   and a new epoch begins.
//! * **Identity before order.** Before a watch is resumed, the server has to show that its history is the one that was
//!   followed: see [`history`]. Without evidence the collection is listed.
//! * **Resume before relist, relist before starting from scratch.** The classifier decides; the machine tells it what was
//!   tried since there was last progress.

mod ahead;
mod gathering;
#[cfg(test)]
mod herd;
mod history;
mod initial;
mod io;
mod listing;
#[cfg(test)]
mod tests;
mod watching;

use std::{collections::BTreeSet, mem, sync::Arc, time::Duration};

use fastrand::Rng;
use watchkeeper_client::{
    classify::{Decision, Failure, Next, Phase, Reason, Situation, Verdict, classify},
    decode::Identity,
};

pub(crate) use self::history::Found;
pub(crate) use self::io::{Action, EventKind, Input, Notice, Outcome, Trouble};
use self::{
    ahead::Ahead,
    gathering::Gathering,
    history::{Evidence, Trust, Verifying},
    initial::Initial,
    io::Effects,
    listing::{Listing, Paging},
    watching::Watching,
};
use super::{
    Change, OnUndecodable, ReflectorOptions, Replacement, VersionOrder, WatchFailure, backoff::Backoff,
    intake::Rejection,
};
use crate::resource_version;

/// What the machine is about.
#[derive(Debug)]
enum State {
    /// Nothing was done yet.
    New,
    /// A list is being read, page by page.
    Listing(Listing),
    /// A list is being read as the beginning of a watch.
    Initial(Initial),
    /// The list has been read; changes are.
    Watching(Watching),
    /// The server is asked for evidence of its history.
    Verifying(Verifying),
    /// Something failed, and is not tried again before `until`.
    Waiting { until: Duration, then: Next },
}

/// How new a list has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Freshness {
    /// Whatever the server has at hand: `0`. For the first list, when nothing has been seen that it could be older than.
    Any,
    /// What was seen already must be in it.
    NotOlderThan(String),
    /// The newest there is, though that be older than what was seen.
    Newest,
}

/// The whole state of a reflector but its connections.
#[derive(Debug)]
pub(crate) struct Machine<K> {
    options: ReflectorOptions,
    random: Rng,
    now: Duration,
    state: State,
    gathering: Gathering<K>,
    /// Everything up to here has been told to the sink.
    version: Option<String>,
    /// The version of the last list or change. The version of a bookmark may be newer.
    changed: Option<String>,
    ahead: Ahead,
    /// The newest changes handed on.
    evidence: Evidence,
    /// The newest objects of the list being read.
    listed: Evidence,
    /// Whether the last watch was ended by the server at the time asked for.
    is_renewal: bool,
    /// The relation of the server's history to the one that was followed.
    trust: Trust,
    /// The keys of objects that are set aside.
    quarantine: BTreeSet<Arc<str>>,
    backoff: Backoff,
    /// What was done about the last failure, until there is progress.
    tried: Option<Next>,
    /// Failures since there was progress.
    failures: u32,
    /// Whether a broken watch was answered with a list since a watch last worked.
    has_relisted: bool,
    /// Why the next list.
    cause: &'static str,
    streaming: initial::Memory,
    /// Whether the server pages even what it answers from memory: it then has no such memory, and whole lists are dear.
    pages_anything: bool,
}

/// Why the first list is one.
const INITIAL: &str = "initial";

/// Why a list follows something that was older than it should be.
const WENT_BACK: &str = "went_back";

impl<K> Machine<K> {
    pub(crate) fn new(options: ReflectorOptions, random: Rng) -> Self {
        Self {
            random,
            now: Duration::ZERO,
            state: State::New,
            gathering: Gathering::default(),
            version: None,
            changed: None,
            ahead: Ahead::default(),
            evidence: Evidence::default(),
            listed: Evidence::default(),
            is_renewal: false,
            trust: Trust::Confirmed,
            quarantine: BTreeSet::new(),
            backoff: Backoff::new(options.backoff.clone()),
            tried: None,
            failures: 0,
            has_relisted: false,
            cause: INITIAL,
            streaming: initial::Memory::default(),
            pages_anything: false,
            options,
        }
    }

    /// Whether a list is being read, as a stream or not.
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.state, State::Listing(_) | State::Initial(_))
    }

    /// Returns whether an object of the list being read may be replaced by the cached object of the same version. Not when the
    /// list may be of another history, in which the same version is another write.
    pub(crate) fn may_reuse(&self) -> bool {
        if matches!(self.trust, Trust::Unverified | Trust::Replaced) {
            return false;
        }
        match &self.state {
            State::Listing(listing) => *listing.freshness() != Freshness::Newest,
            State::Initial(initial) => *initial.freshness() != Freshness::Newest,
            State::New | State::Watching(_) | State::Verifying(_) | State::Waiting { .. } => false,
        }
    }

    /// Everything up to here has been told to the sink.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The object, if an earlier attempt at the present list brought this very version of it.
    pub(crate) fn recall(&self, identity: &Identity) -> Option<Arc<K>> {
        self.gathering.recall(identity)
    }

    /// Takes what happened by `now`, and says what to do.
    pub(crate) fn step(&mut self, now: Duration, input: Input<K>) -> Outcome<K> {
        debug_assert!(now >= self.now, "time goes forward");
        self.now = now;
        let fx = &mut Effects::default();
        let action = match (mem::replace(&mut self.state, State::New), input) {
            (State::New, _) => self.go(Next::Relist, fx),
            (State::Waiting { until, then }, Input::Timer) if now >= until => self.go(then, fx),

            (State::Listing(listing), Input::Item(incoming)) => self.item(listing, incoming, fx),
            (State::Listing(listing), Input::PageEnd(end)) => self.page_end(listing, end, fx),
            (State::Listing(listing), Input::Failed(trouble)) => self.list_failed(listing, &trouble, fx),
            (State::Listing(listing), Input::Ended) => self.list_failed(listing, &listing::cut_short(), fx),

            (State::Initial(initial), Input::Opened) => self.initial_opened(initial),
            (State::Initial(initial), Input::Event(kind, incoming)) => {
                self.initial_event(initial, kind, incoming, fx)
            }
            (State::Initial(initial), Input::Bookmark(mark)) => self.initial_bookmark(initial, mark, fx),
            (State::Initial(initial), Input::Timer) => self.initial_timer(initial, fx),
            (State::Initial(initial), Input::Ended) => self.initial_ended(initial, fx),
            (State::Initial(initial), Input::Failed(trouble)) => self.initial_failed(initial, &trouble, fx),

            (State::Watching(watching), Input::Opened) => self.watch_opened(watching, fx),
            (State::Watching(watching), Input::Event(kind, incoming)) => {
                self.watch_event(watching, kind, incoming, fx)
            }
            (State::Watching(watching), Input::Bookmark(mark)) => self.watch_bookmark(watching, mark, fx),
            (State::Watching(watching), Input::Timer) => self.watch_timer(watching, fx),
            (State::Watching(watching), Input::Checked(found)) => self.checked_beside(watching, &found, fx),
            (State::Watching(watching), Input::Ended) => self.watch_ended(&watching, fx),
            (State::Watching(watching), Input::Failed(trouble)) => self.watch_failed(&watching, &trouble, fx),

            (State::Verifying(verifying), Input::Checked(found)) => self.checked(verifying, &found, fx),

            // A list that opened, a timer that came early, the response to a check beside a watch that is over.
            (state, _) => {
                self.state = state;
                self.carry_on()
            }
        };
        let Effects { change, notices, check } = mem::take(fx);
        Outcome { change, notices, check, action }
    }

    /// What to do when nothing changed.
    fn carry_on(&self) -> Action {
        match &self.state {
            State::Waiting { until, .. } => Action::Wait { until: *until },
            State::New | State::Listing(_) | State::Verifying(_) => Action::Read { deadline: None },
            State::Initial(initial) => Action::Read { deadline: initial.deadline(&self.options.streaming) },
            State::Watching(watching) => Action::Read { deadline: watching.deadline(&self.options.watch) },
        }
    }

    fn go(&mut self, next: Next, fx: &mut Effects<K>) -> Action {
        if next != Next::RelistFromScratch
            && self.must_verify()
            && let Some(verification) = self.verification()
        {
            return self.start_verifying(next, verification, fx);
        }
        match (next, &self.version) {
            (Next::Resume, Some(_)) => self.resume_watch(),
            (Next::Relist, Some(version)) => {
                let freshness = Freshness::NotOlderThan(version.clone());
                self.start_list(freshness, fx)
            }
            (Next::Resume | Next::Relist, None) => self.start_list(Freshness::Any, fx),
            (Next::RelistFromScratch, _) => self.start_list(Freshness::Newest, fx),
        }
    }

    fn start_list(&mut self, freshness: Freshness, fx: &mut Effects<K>) -> Action {
        if self.streaming.is_worth_trying(self.now, &self.options.streaming) {
            self.start_initial(freshness, fx)
        } else {
            self.start_listing(freshness, Paging::Auto, fx)
        }
    }

    /// The list is whole: tells it, and goes on from its version. An error when it is a step back in time, and must not
    /// be used.
    fn sync(&mut self, found: String, freshness: &Freshness, fx: &mut Effects<K>) -> Result<(), StepBack> {
        let mut is_new_epoch = self.trust == Trust::Replaced;
        if let Some(seen) = &self.version
            && self.is_older(&found, seen)
        {
            if *freshness != Freshness::Newest {
                let seen = seen.clone();
                return Err(StepBack { found, seen });
            }
            is_new_epoch = true;
        }
        if is_new_epoch {
            let seen = self.version.clone().unwrap_or_default();
            fx.notice(Notice::NewEpoch { found: found.clone(), seen });
        }
        self.trust = Trust::Confirmed;
        let gathered = self.gathering.finish();
        self.evidence = mem::take(&mut self.listed).of_list(gathered.objects.len() + gathered.rejected.len());
        self.ahead = if self.options.versions == VersionOrder::Ordered {
            Ahead::of(&gathered.objects, &found)
        } else {
            Ahead::default()
        };
        let mut released = mem::take(&mut self.quarantine);
        let mut kept = Vec::with_capacity(gathered.rejected.len());
        for (identity, rejection) in gathered.rejected {
            released.remove(identity.key());
            self.set_aside(&identity, &rejection, fx);
            kept.push(identity);
        }
        fx.notices.extend(released.into_iter().map(Notice::Released));
        fx.notice(Notice::Synced);
        fx.change = Some(Change::Replaced(Replacement {
            objects: gathered.objects,
            kept,
            resource_version: found.clone(),
            is_new_epoch,
        }));
        self.changed = Some(found.clone());
        self.version = Some(found);
        Ok(())
    }

    fn set_aside(&mut self, identity: &Identity, rejection: &Rejection, fx: &mut Effects<K>) {
        let report = rejection.report(identity);
        self.quarantine.insert(Arc::clone(&report.key));
        fx.notice(Notice::Quarantined(report));
    }

    fn release(&mut self, key: &str, fx: &mut Effects<K>) {
        if let Some(key) = self.quarantine.take(key) {
            fx.notice(Notice::Released(key));
        }
    }

    /// What to fail with because of an object that cannot be had, if that is to be.
    fn strict_trouble(&self, identity: &Identity, rejection: &Rejection) -> Option<Trouble> {
        (self.options.undecodable == OnUndecodable::Fail).then(|| {
            let message = rejection.report(identity).to_string();
            Trouble::new(Failure::new(Reason::Decode), message)
        })
    }

    fn is_older(&self, a: &str, b: &str) -> bool {
        self.options.versions == VersionOrder::Ordered && resource_version::is_older(a, b)
    }

    fn judge(&self, phase: Phase, failure: Failure) -> Verdict {
        let situation = Situation::at(phase);
        classify(self.tried.map_or(situation, |tried| situation.after(tried)), failure)
    }

    fn fail(&mut self, phase: Phase, trouble: &Trouble, fx: &mut Effects<K>) -> Action {
        let verdict = self.judge(phase, trouble.failure);
        self.follow(phase, trouble.failure, verdict, &trouble.message, fx)
    }

    fn protocol_failure() -> Failure {
        Failure::new(Reason::Protocol)
    }

    fn follow(
        &mut self,
        phase: Phase,
        failure: Failure,
        verdict: Verdict,
        message: &Arc<str>,
        fx: &mut Effects<K>,
    ) -> Action {
        self.follow_because(verdict.reason.label(), phase, failure, verdict, message, fx)
    }

    /// Does what was decided, now or after a wait. `cause` is what a list is counted under, if it comes to that.
    fn follow_because(
        &mut self,
        cause: &'static str,
        phase: Phase,
        failure: Failure,
        mut verdict: Verdict,
        message: &Arc<str>,
        fx: &mut Effects<K>,
    ) -> Action {
        // A server that answered this request at all has not been replaced since the last check.
        self.is_renewal = false;
        if phase == Phase::WatchStream || is_loss_of_connection(failure.reason()) {
            self.trust.connection_lost();
        }
        if let Decision::GiveUp { then } = verdict.decision
            && self.backoff.is_starting(self.now)
        {
            verdict.decision = Decision::BackOff { retry_after: failure.retry_after(), then };
        }
        let Verdict { decision, reason } = verdict;
        let next = decision.next();
        // A broken watch is answered with a list at once, unless the last list led to no watch that worked.
        let is_list_in_vain = phase != Phase::List && self.has_relisted;
        self.has_relisted |= phase != Phase::List && next != Next::Resume;
        let is_paced = match decision {
            Decision::BackOff { .. } | Decision::GiveUp { .. } => true,
            Decision::Relist | Decision::RelistFromScratch => is_list_in_vain,
            Decision::Resume => false,
        };
        let jitter = self.random.f64();
        let wait = is_paced.then(|| self.backoff.next(self.now, failure, jitter));
        self.tried = Some(next);
        self.report(phase, verdict, message, wait, fx);
        if next == Next::Resume {
            fx.notice(Notice::WatchRestarted { reason: reason.label() });
        } else {
            self.cause = cause;
        }
        match wait {
            Some(wait) => {
                let until = self.now.saturating_add(wait);
                self.state = State::Waiting { until, then: next };
                Action::Wait { until }
            }
            None => self.go(next, fx),
        }
    }

    fn report(
        &mut self,
        phase: Phase,
        verdict: Verdict,
        message: &Arc<str>,
        retry_in: Option<Duration>,
        fx: &mut Effects<K>,
    ) {
        self.failures = self.failures.saturating_add(1);
        fx.notice(Notice::Failed(WatchFailure {
            phase,
            reason: verdict.reason,
            message: Arc::clone(message),
            next: verdict.decision.next(),
            retry_in,
            attempts: self.failures,
            will_pass: !matches!(verdict.decision, Decision::GiveUp { .. }),
        }));
    }
}

/// Returns whether a failure with this reason leaves open which server, in what state, will answer the next request.
fn is_loss_of_connection(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Transport(_) | Reason::Idle | Reason::Deadline | Reason::Closed | Reason::ClosedEarly
    )
}

/// A list that is older than what was seen.
#[derive(Debug)]
struct StepBack {
    found: String,
    seen: String,
}

impl StepBack {
    /// What to tell and do about it. A server that is merely behind has to be asked for the newest there is; if it says the
    /// same again, then that is the newest, and its history was replaced.
    fn verdict<K>(self, fx: &mut Effects<K>) -> (Verdict, Arc<str>) {
        let Self { found, seen } = self;
        let message = format!(
            "the list is of resourceVersion {found}, though at least {seen} was asked for; \
             set ReflectorOptions::versions to Opaque if this server's versions do not count up"
        );
        fx.notice(Notice::WentBack { what: "list", found, seen });
        (Verdict { decision: Decision::RelistFromScratch, reason: Reason::Protocol }, message.into())
    }
}
