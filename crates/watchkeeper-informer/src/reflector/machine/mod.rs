//! The list-watch protocol as a state machine: an input and the time go in, the next action comes out.
//!
//! The machine does not wait, send requests, read a clock or create randomness. Times are durations since the
//! start of the driver, and random numbers come from an injected generator.
//!
//! ```text
//!            ┌──────────────── delay elapsed ────────────────┐
//!            │                                               │
//!            ▼        rejected, broken or too slow           │
//!   New ─▶ StreamingList ────────────────────▶ PagedList     │
//!            │  end of the initial events        │ last page │
//!            │  (the stream is the watch)        │           │
//!            ▼                                   ▼           │
//!          Watch ◀───────────────────────────────┘        Backoff
//!            │  ▲                                            ▲
//!      ended │  │ history confirmed                          │
//!            ▼  │                                            │
//!          Verifying ──▶ list, if not confirmed              │
//!      any state ──────── failure, by classifier ────────────┘
//! ```
//!
//! The rules:
//!
//! * **The version to resume from** is that of the last complete list, the last applied event or the last
//!   bookmark. The initial events of a stream are not ordered and do not change it; only the bookmark at
//!   their end does.
//! * **Never back in time.** A list must be at least as new as that version. An older list or event is
//!   rejected. Only a list of the newest state may be older: then the server's history was replaced, and a
//!   new epoch starts.
//! * **Identity before order.** Before a watch is resumed, the server has to show that its history is the one
//!   that was followed; see [`history`]. Without evidence the collection is relisted.
//! * **Resume before relist, relist before relisting from scratch.** The classifier decides, given the
//!   attempts since the last progress.

#[cfg(test)]
mod herd;
mod history;
mod io;
mod list_assembly;
mod newer_than_list;
mod paged_list;
mod streaming_list;
#[cfg(test)]
mod tests;
mod watch;

use std::{collections::BTreeSet, mem, sync::Arc, time::Duration};

use fastrand::Rng;
use watchkeeper_client::{
    classify::{Classification, Decision, Failure, Next, Phase, Reason, Situation, classify},
    decode::Identity,
};

pub(crate) use self::history::CheckResponse;
pub(crate) use self::io::{DriverAction, EventKind, FailureReport, Input, ReflectorEvent, StepOutput};
pub(crate) use self::paged_list::cut_short;
use self::{
    history::{HistoryEvidence, Trust, Verifying},
    io::Effects,
    list_assembly::ListAssembly,
    newer_than_list::NewerThanList,
    paged_list::{PagedList, Paging},
    streaming_list::StreamingList,
    watch::WatchState,
};
use super::{
    OnUndecodable, ReflectorOptions, Replacement, VersionOrder, WatchDelta, WatchFailure,
    backoff::FailureBackoff, intake::ObjectRejection,
};
use crate::{Cached, resource_version};

/// The state of the list-watch protocol.
#[derive(Debug)]
enum State {
    /// The machine has not sent a request.
    New,
    /// A paginated list is being read.
    PagedList(PagedList),
    /// A streaming list is being read.
    StreamingList(StreamingList),
    /// The list is complete, and a watch is requested or open.
    Watch(WatchState),
    /// The server's history is being verified.
    Verifying(Verifying),
    /// A request failed and is retried at `until`.
    Backoff { until: Duration, then: Next },
}

/// The required freshness of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ListFreshness {
    /// Any state that the server has in memory: resourceVersion `0`. For the initial list, which cannot go
    /// back in time.
    Any,
    /// A state that is not older than this version.
    NotOlderThan(String),
    /// The newest state, even if it is older than the version reached.
    Newest,
}

/// The state of a reflector without its connections.
#[derive(Debug)]
pub(crate) struct Machine<K> {
    options: ReflectorOptions,
    random: Rng,
    now: Duration,
    state: State,
    assembly: ListAssembly<K>,
    /// The version up to which everything was passed to the sink.
    version: Option<String>,
    /// The version of the last list or change. The version of a bookmark may be newer.
    changed: Option<String>,
    ahead: NewerThanList,
    /// The newest changes that were passed to the sink.
    evidence: HistoryEvidence,
    /// The newest objects of the list being read.
    listed: HistoryEvidence,
    /// Whether the server ended the last watch at the requested time.
    is_renewal: bool,
    /// The relation of the server's history to the one that was followed.
    trust: Trust,
    /// The keys of quarantined objects.
    quarantine: BTreeSet<Arc<str>>,
    backoff: FailureBackoff,
    /// The recovery from the last failure, until there is progress.
    tried: Option<Next>,
    /// The number of failures since the last progress.
    failures: u32,
    /// Whether a broken watch was followed by a relist since a watch last worked.
    has_relisted: bool,
    /// The cause of the next list.
    cause: &'static str,
    streaming: streaming_list::StreamingSupport,
    /// Whether the server paginates lists from memory: it then has no watch cache, and lists in one page are
    /// expensive.
    pages_anything: bool,
}

/// The cause of the initial list.
const INITIAL: &str = "initial";

/// The cause of a relist after an older version than before.
const WENT_BACK: &str = "went_back";

impl<K> Machine<K> {
    pub(crate) fn new(options: ReflectorOptions, random: Rng) -> Self {
        Self {
            random,
            now: Duration::ZERO,
            state: State::New,
            assembly: ListAssembly::default(),
            version: None,
            changed: None,
            ahead: NewerThanList::default(),
            evidence: HistoryEvidence::default(),
            listed: HistoryEvidence::default(),
            is_renewal: false,
            trust: Trust::Confirmed,
            quarantine: BTreeSet::new(),
            backoff: FailureBackoff::new(options.backoff.clone()),
            tried: None,
            failures: 0,
            has_relisted: false,
            cause: INITIAL,
            streaming: streaming_list::StreamingSupport::default(),
            pages_anything: false,
            options,
        }
    }

    /// Returns whether a list is being read, paginated or streaming.
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.state, State::PagedList(_) | State::StreamingList(_))
    }

    /// Returns whether an object of the current list may be replaced by the cached object of the same
    /// version. Not if the list may be of another history, in which the same version is another write.
    pub(crate) fn may_reuse(&self) -> bool {
        if matches!(self.trust, Trust::Unverified | Trust::Replaced) {
            return false;
        }
        match &self.state {
            State::PagedList(paged) => *paged.freshness() != ListFreshness::Newest,
            State::StreamingList(streaming) => *streaming.freshness() != ListFreshness::Newest,
            State::New | State::Watch(_) | State::Verifying(_) | State::Backoff { .. } => false,
        }
    }

    /// Returns the version up to which everything was passed to the sink.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the object, if an earlier attempt at the current list received exactly this version.
    pub(crate) fn recall(&self, identity: &Identity) -> Option<Cached<K>> {
        self.assembly.recall(identity)
    }

    /// Processes an input at time `now` and returns the next action.
    pub(crate) fn step(&mut self, now: Duration, input: Input<K>) -> StepOutput<K> {
        debug_assert!(now >= self.now, "time goes forward");
        self.now = now;
        let fx = &mut Effects::default();
        let action = match (mem::replace(&mut self.state, State::New), input) {
            (State::New, _) => self.proceed(Next::Relist, fx),
            (State::Backoff { until, then }, Input::Timer) if now >= until => self.proceed(then, fx),

            (State::PagedList(paged), Input::Item(incoming)) => self.item(paged, incoming, fx),
            (State::PagedList(paged), Input::PageEnd(end)) => self.page_end(paged, end, fx),
            (State::PagedList(paged), Input::Failed(failure_report)) => {
                self.list_failed(paged, &failure_report, fx)
            }
            (State::PagedList(paged), Input::Ended) => self.list_failed(paged, &cut_short(), fx),

            (State::StreamingList(streaming), Input::Opened) => self.initial_opened(streaming),
            (State::StreamingList(streaming), Input::Event(kind, incoming)) => {
                self.initial_event(streaming, kind, incoming, fx)
            }
            (State::StreamingList(streaming), Input::Bookmark(mark)) => {
                self.initial_bookmark(streaming, mark, fx)
            }
            (State::StreamingList(streaming), Input::Timer) => self.initial_timer(streaming, fx),
            (State::StreamingList(streaming), Input::Ended) => self.initial_ended(streaming, fx),
            (State::StreamingList(streaming), Input::Failed(failure_report)) => {
                self.initial_failed(streaming, &failure_report, fx)
            }

            (State::Watch(watch), Input::Opened) => self.watch_opened(watch, fx),
            (State::Watch(watch), Input::Event(kind, incoming)) => {
                self.watch_event(watch, kind, incoming, fx)
            }
            (State::Watch(watch), Input::Bookmark(mark)) => self.watch_bookmark(watch, mark, fx),
            (State::Watch(watch), Input::Timer) => self.watch_timer(watch, fx),
            (State::Watch(watch), Input::Checked(found)) => self.checked_beside(watch, &found, fx),
            (State::Watch(watch), Input::Ended) => self.watch_ended(&watch, fx),
            (State::Watch(watch), Input::Failed(failure_report)) => {
                self.watch_failed(&watch, &failure_report, fx)
            }

            (State::Verifying(verifying), Input::Checked(found)) => self.checked(verifying, &found, fx),

            // A list that was opened, an early timer, or the response to a check beside a watch that has
            // ended.
            (state, _) => {
                self.state = state;
                self.continue_state()
            }
        };
        let Effects { change, events, check } = mem::take(fx);
        StepOutput { change, events, check, action }
    }

    /// Returns the action that continues the current state.
    fn continue_state(&self) -> DriverAction {
        match &self.state {
            State::Backoff { until, .. } => DriverAction::Wait { until: *until },
            State::New | State::PagedList(_) | State::Verifying(_) => DriverAction::Read { deadline: None },
            State::StreamingList(streaming) => {
                DriverAction::Read { deadline: streaming.deadline(&self.options.streaming) }
            }
            State::Watch(watch) => DriverAction::Read { deadline: watch.deadline(&self.options.watch) },
        }
    }

    fn proceed(&mut self, next: Next, fx: &mut Effects<K>) -> DriverAction {
        if next != Next::RelistFromScratch
            && self.must_verify()
            && let Some(verification) = self.verification()
        {
            return self.start_verifying(next, verification, fx);
        }
        match (next, &self.version) {
            (Next::Resume, Some(_)) => self.resume_watch(),
            (Next::Relist, Some(version)) => {
                let freshness = ListFreshness::NotOlderThan(version.clone());
                self.start_list(freshness, fx)
            }
            (Next::Resume | Next::Relist, None) => self.start_list(ListFreshness::Any, fx),
            (Next::RelistFromScratch, _) => self.start_list(ListFreshness::Newest, fx),
        }
    }

    fn start_list(&mut self, freshness: ListFreshness, fx: &mut Effects<K>) -> DriverAction {
        if self.streaming.is_worth_trying(self.now, &self.options.streaming) {
            self.start_initial(freshness, fx)
        } else {
            self.start_listing(freshness, Paging::Auto, fx)
        }
    }

    /// Completes a list: emits it and continues from its version. Fails if the list goes back in time.
    fn sync(
        &mut self,
        found: String,
        freshness: &ListFreshness,
        fx: &mut Effects<K>,
    ) -> Result<(), StepBack> {
        let mut is_new_epoch = self.trust == Trust::Replaced;
        if let Some(seen) = &self.version
            && self.is_older(&found, seen)
        {
            if *freshness != ListFreshness::Newest {
                let seen = seen.clone();
                return Err(StepBack { found, seen });
            }
            is_new_epoch = true;
        }
        if is_new_epoch {
            let seen = self.version.clone().unwrap_or_default();
            fx.event(ReflectorEvent::NewEpoch { found: found.clone(), seen });
        }
        self.trust = Trust::Confirmed;
        let assembled = self.assembly.finish();
        self.evidence =
            mem::take(&mut self.listed).of_list(assembled.objects.len() + assembled.rejected.len());
        self.ahead = if self.options.versions == VersionOrder::Ordered {
            NewerThanList::of(&assembled.objects, &found)
        } else {
            NewerThanList::default()
        };
        let mut released = mem::take(&mut self.quarantine);
        let mut kept = Vec::with_capacity(assembled.rejected.len());
        for (identity, rejection) in assembled.rejected {
            released.remove(identity.key());
            self.quarantine_object(&identity, &rejection, fx);
            kept.push(identity);
        }
        fx.events.extend(released.into_iter().map(ReflectorEvent::Released));
        fx.event(ReflectorEvent::Synced);
        fx.change = Some(WatchDelta::Replaced(Replacement {
            objects: assembled.objects,
            kept,
            resource_version: found.clone(),
            is_new_epoch,
        }));
        self.changed = Some(found.clone());
        self.version = Some(found);
        Ok(())
    }

    fn quarantine_object(&mut self, identity: &Identity, rejection: &ObjectRejection, fx: &mut Effects<K>) {
        let report = rejection.report(identity);
        self.quarantine.insert(Arc::clone(&report.key));
        fx.event(ReflectorEvent::Quarantined(report));
    }

    fn release(&mut self, key: &str, fx: &mut Effects<K>) {
        if let Some(key) = self.quarantine.take(key) {
            fx.event(ReflectorEvent::Released(key));
        }
    }

    /// Returns the failure for an object that cannot be decoded, if the options require one.
    fn strict_failure(&self, identity: &Identity, rejection: &ObjectRejection) -> Option<FailureReport> {
        (self.options.undecodable == OnUndecodable::Fail).then(|| {
            let message = rejection.report(identity).to_string();
            FailureReport::new(Failure::new(Reason::Decode), message)
        })
    }

    fn is_older(&self, a: &str, b: &str) -> bool {
        self.options.versions == VersionOrder::Ordered && resource_version::is_older(a, b)
    }

    fn classify(&self, phase: Phase, failure: Failure) -> Classification {
        let situation = Situation::at(phase);
        classify(self.tried.map_or(situation, |tried| situation.after(tried)), failure)
    }

    fn fail(&mut self, phase: Phase, failure_report: &FailureReport, fx: &mut Effects<K>) -> DriverAction {
        let classification = self.classify(phase, failure_report.failure);
        self.execute(phase, failure_report.failure, classification, &failure_report.message, fx)
    }

    fn protocol_failure() -> Failure {
        Failure::new(Reason::Protocol)
    }

    fn execute(
        &mut self,
        phase: Phase,
        failure: Failure,
        classification: Classification,
        message: &Arc<str>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        self.execute_with_cause(classification.reason.label(), phase, failure, classification, message, fx)
    }

    /// Executes a decision, immediately or after a delay. A relist is counted under `cause`.
    fn execute_with_cause(
        &mut self,
        cause: &'static str,
        phase: Phase,
        failure: Failure,
        mut classification: Classification,
        message: &Arc<str>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        // A server that responded to this request has not been replaced since the last check.
        self.is_renewal = false;
        if phase == Phase::WatchStream || is_loss_of_connection(failure.reason()) {
            self.trust.connection_lost();
        }
        if let Decision::GiveUp { then } = classification.decision
            && self.backoff.is_starting(self.now)
        {
            classification.decision = Decision::BackOff { retry_after: failure.retry_after(), then };
        }
        let Classification { decision, reason } = classification;
        let next = decision.next();
        // After a broken watch the relist is immediate, unless the previous relist led to no working watch.
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
        self.report(phase, classification, message, wait, fx);
        if next == Next::Resume {
            fx.event(ReflectorEvent::WatchRestarted { reason: reason.label() });
        } else {
            self.cause = cause;
        }
        match wait {
            Some(wait) => {
                let until = self.now.saturating_add(wait);
                self.state = State::Backoff { until, then: next };
                DriverAction::Wait { until }
            }
            None => self.proceed(next, fx),
        }
    }

    fn report(
        &mut self,
        phase: Phase,
        classification: Classification,
        message: &Arc<str>,
        retry_in: Option<Duration>,
        fx: &mut Effects<K>,
    ) {
        self.failures = self.failures.saturating_add(1);
        fx.event(ReflectorEvent::Failed(WatchFailure {
            phase,
            reason: classification.reason,
            message: Arc::clone(message),
            next: classification.decision.next(),
            retry_in,
            attempts: self.failures,
            is_transient: !matches!(classification.decision, Decision::GiveUp { .. }),
        }));
    }
}

/// Returns whether a failure with this reason leaves open which server will respond to the next request.
fn is_loss_of_connection(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Transport(_) | Reason::Idle | Reason::Deadline | Reason::Closed | Reason::ClosedEarly
    )
}

/// A list that is older than the version reached.
#[derive(Debug)]
struct StepBack {
    found: String,
    seen: String,
}

impl StepBack {
    /// Returns the decision and the message. The newest state is requested from a server that lags behind. If
    /// that is as old, the server's history was replaced.
    fn classification<K>(self, fx: &mut Effects<K>) -> (Classification, Arc<str>) {
        let Self { found, seen } = self;
        let message = format!(
            "the list is of resourceVersion {found}, though at least {seen} was requested; \
             set ReflectorOptions::versions to Opaque if this server's versions do not count up"
        );
        fx.event(ReflectorEvent::VersionWentBack { what: "list", found, seen });
        (Classification { decision: Decision::RelistFromScratch, reason: Reason::Protocol }, message.into())
    }
}
