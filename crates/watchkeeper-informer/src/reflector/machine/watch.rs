//! Watches.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Decision, Failure, Next, Phase, Reason, Situation, classify},
    list_watch::{Bookmark, WatchRequest},
};

use super::{
    CheckResponse, DriverAction, EventKind, FailureReport, Machine, ReflectorEvent, State, WENT_BACK,
    history::{CheckResult, Verification},
    io::Effects,
};
use crate::{
    reflector::{ReceivedObject, VersionOrder, WatchDelta, WatchOptions, intake::Incoming},
    resource_version,
};

/// The minimum duration of a working watch without events. A shorter one is a sign of a server that is not
/// serving.
pub(super) const MIN_WORKING_DURATION: Duration = Duration::from_secs(1);

/// A requested or open watch.
#[derive(Debug)]
pub(super) struct WatchState {
    timeout: Duration,
    /// The version from which the watch replays changes, if that is older than the version reached.
    replays_from: Option<String>,
    opened: Option<Duration>,
    /// Whether the watch advanced the version to resume from.
    moved: bool,
    /// Whether the watch started with a list, which counts as progress.
    has_listed: bool,
    /// A verification in progress beside the watch.
    verification: Option<Verification>,
    next_check: Option<Duration>,
}

impl WatchState {
    fn requested(timeout: Duration, replays_from: Option<String>) -> Self {
        Self {
            timeout,
            replays_from,
            opened: None,
            moved: false,
            has_listed: false,
            verification: None,
            next_check: None,
        }
    }

    /// Returns the watch that a completed streaming list continues as.
    pub(super) fn behind_list(timeout: Duration, now: Duration) -> Self {
        Self { opened: Some(now), has_listed: true, ..Self::requested(timeout, None) }
    }

    /// Returns the time of the next check or timeout.
    pub(super) fn deadline(&self, options: &WatchOptions) -> Option<Duration> {
        let dead = self.dead_at(options)?;
        Some(self.next_check.map_or(dead, |check| check.min(dead)))
    }

    /// Returns whether the server ended the watch at the requested time, with a tolerance of one second.
    fn was_ended_as_requested(&self, now: Duration) -> bool {
        let at = self.opened.map(|opened| opened.saturating_add(self.timeout));
        at.is_some_and(|at| now.saturating_add(Duration::from_secs(1)) >= at)
    }

    /// Returns the time at which the watch counts as dead.
    fn dead_at(&self, options: &WatchOptions) -> Option<Duration> {
        Some(self.opened?.saturating_add(self.timeout).saturating_add(options.grace))
    }
}

impl<K> Machine<K> {
    /// Starts a watch from the version of a list.
    pub(super) fn start_watch(&mut self, version: String) -> DriverAction {
        self.watch_from(version, None)
    }

    /// Resumes the watch: from the version reached if the last watch ended at the requested time, otherwise
    /// from the last change, so that a server with another history reveals its changes since.
    pub(super) fn resume_watch(&mut self) -> DriverAction {
        let reached = self.version.clone().unwrap_or_default();
        let verifies =
            self.options.history_check.on_reconnect && self.options.versions == VersionOrder::Ordered;
        let changed = self
            .changed
            .clone()
            .filter(|changed| verifies && !self.is_renewal && resource_version::is_older(changed, &reached));
        match changed {
            Some(changed) => self.watch_from(changed.clone(), Some(changed)),
            None => self.watch_from(reached, None),
        }
    }

    fn watch_from(&mut self, version: String, replays_from: Option<String>) -> DriverAction {
        let timeout = self.watch_timeout();
        self.state = State::Watch(WatchState::requested(timeout, replays_from));
        DriverAction::Watch(WatchRequest::new().resource_version(version).timeout(timeout))
    }

    pub(super) fn watch_timeout(&mut self) -> Duration {
        Duration::from_secs(self.random.u64(self.options.watch.timeout_seconds()))
    }

    pub(super) fn watch_opened(&mut self, watch: WatchState, fx: &mut Effects<K>) -> DriverAction {
        self.state = State::Watch(WatchState { opened: Some(self.now), ..watch });
        self.record_open(fx)
    }

    /// Records that the watch is open.
    pub(super) fn record_open(&mut self, fx: &mut Effects<K>) -> DriverAction {
        fx.event(ReflectorEvent::WatchOpened);
        if let State::Watch(watch) = &mut self.state {
            watch.next_check = self.options.history_check.next(self.now);
        }
        self.continue_state()
    }

    fn check_if_due(&mut self, fx: &mut Effects<K>) {
        let verification = self.verification();
        if let State::Watch(watch) = &mut self.state
            && watch.next_check.is_some_and(|at| self.now >= at)
        {
            watch.next_check = self.options.history_check.next(self.now);
            if self.options.versions == VersionOrder::Ordered
                && let Some(verification) = verification
            {
                fx.check = Some(verification.request());
                watch.verification = Some(verification);
                fx.event(ReflectorEvent::HistoryChecked);
            }
        }
    }

    /// Handles the response to a check beside an open watch. Without evidence the watch continues, because it
    /// was not interrupted.
    pub(super) fn checked_beside(
        &mut self,
        mut watch: WatchState,
        response: &Result<CheckResponse, FailureReport>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        if let Some(mut verification) = watch.verification.take() {
            match verification.evaluate(response) {
                CheckResult::Continue => {
                    fx.check = Some(verification.request());
                    watch.verification = Some(verification);
                }
                CheckResult::Refuted(why) => {
                    self.record_progress(&watch);
                    return self.history_replaced(&why, Phase::WatchStream, fx);
                }
                CheckResult::Confirmed | CheckResult::Unconfirmed | CheckResult::Failed => {}
            }
        }
        self.state = State::Watch(watch);
        self.continue_state()
    }

    pub(super) fn watch_event(
        &mut self,
        mut watch: WatchState,
        kind: EventKind,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        let Incoming { identity, object, content } = incoming;
        let Some(found) = identity.resource_version().map(str::to_owned) else {
            // An event without a version would leave no version to resume from.
            let message = format!("an event of object {:?} has no resourceVersion", identity.key());
            let failure_report = FailureReport::new(Failure::new(Reason::Protocol), message);
            return self.watch_failed(&watch, &failure_report, fx);
        };
        if let Some(seen) = &self.version {
            if let Some(from) = &watch.replays_from
                && resource_version::is_older(from, &found)
                && !resource_version::is_older(seen, &found)
            {
                // The bookmark at `seen` covered this version, and the history that was followed has no
                // change there.
                let why = format!(
                    "the watch brought resourceVersion {found} of object {:?}, and no change of this collection up to {seen} \
                     was expected",
                    identity.key()
                );
                self.record_progress(&watch);
                return self.history_replaced(&why, Phase::WatchStream, fx);
            }
            if self.is_older(&found, seen) {
                return self.event_went_back(&watch, identity.key(), found, seen.clone(), fx);
            }
        }
        // An event that changes nothing still advances the version.
        let progress = || Some(WatchDelta::Bookmark { resource_version: found.clone() });
        if self.ahead.covers(&identity) {
            fx.change = progress();
        } else {
            if kind == EventKind::Deleted {
                self.evidence.deleted(&identity);
            } else {
                self.evidence.written(&identity, content.as_ref());
            }
            match (kind, object) {
                (EventKind::Deleted, object) => {
                    self.release(identity.key(), fx);
                    fx.change = Some(WatchDelta::Deleted { identity, object: object.ok() });
                }
                (kind, Ok(object)) => {
                    self.release(identity.key(), fx);
                    let object = ReceivedObject { identity, object };
                    fx.change = Some(match kind {
                        EventKind::Added => WatchDelta::Added(object),
                        _ => WatchDelta::Updated(object),
                    });
                }
                (_, Err(rejection)) => {
                    if let Some(failure_report) = self.strict_failure(&identity, &rejection) {
                        return self.watch_failed(&watch, &failure_report, fx);
                    }
                    self.quarantine_object(&identity, &rejection, fx);
                    fx.change = progress();
                }
            }
        }
        watch.moved |= self.version.as_ref() != Some(&found);
        watch.replays_from = None;
        self.changed = Some(found.clone());
        self.version = Some(found);
        self.state = State::Watch(watch);
        self.continue_state()
    }

    fn event_went_back(
        &mut self,
        watch: &WatchState,
        key: &str,
        found: String,
        seen: String,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        self.record_progress(watch);
        let message = format!(
            "the watch brought resourceVersion {found} of object {key:?} after {seen}; \
             set ReflectorOptions::versions to Opaque if this server's versions do not count up"
        );
        fx.event(ReflectorEvent::VersionWentBack { what: "event", found, seen });
        // Resuming from a version that the server does not respect cannot succeed, so the collection is
        // relisted.
        let tried = self.tried.unwrap_or(Next::Resume);
        let situation = Situation::at(Phase::WatchStream).after(tried);
        let failure = Self::protocol_failure();
        let classification = classify(situation, failure);
        self.execute_with_cause(WENT_BACK, Phase::WatchStream, failure, classification, &message.into(), fx)
    }

    pub(super) fn watch_bookmark(
        &mut self,
        mut watch: WatchState,
        mark: Bookmark,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        let found = mark.resource_version;
        match &self.version {
            Some(seen) if *seen == found => {}
            // The server replays from the last change to the version reached.
            Some(seen) if watch.replays_from.is_some() && self.is_older(&found, seen) => {}
            // An older bookmark has no changes, so it is reported and ignored.
            Some(seen) if self.is_older(&found, seen) => {
                fx.event(ReflectorEvent::VersionWentBack { what: "bookmark", found, seen: seen.clone() });
            }
            _ => {
                watch.moved = true;
                watch.replays_from = None;
                fx.change = Some(WatchDelta::Bookmark { resource_version: found.clone() });
                self.version = Some(found);
            }
        }
        self.state = State::Watch(watch);
        self.continue_state()
    }

    pub(super) fn watch_timer(&mut self, watch: WatchState, fx: &mut Effects<K>) -> DriverAction {
        if watch.dead_at(&self.options.watch).is_some_and(|at| self.now >= at) {
            let message = "the watch was neither ended by the server nor active in time";
            return self.watch_failed(&watch, &FailureReport::new(Failure::new(Reason::Idle), message), fx);
        }
        self.state = State::Watch(watch);
        self.check_if_due(fx);
        self.continue_state()
    }

    pub(super) fn watch_ended(&mut self, watch: &WatchState, fx: &mut Effects<K>) -> DriverAction {
        let failure = Failure::closed(self.record_progress(watch));
        let classification = self.classify(Phase::WatchStream, failure);
        if classification.decision == Decision::Resume {
            // The normal end of a watch is not a failure.
            self.trust.connection_lost();
            self.is_renewal = watch.was_ended_as_requested(self.now);
            fx.event(ReflectorEvent::WatchRestarted { reason: classification.reason.label() });
            return self.proceed(Next::Resume, fx);
        }
        let message = "the server ended the watch immediately, without an event".into();
        self.execute(Phase::WatchStream, failure, classification, &message, fx)
    }

    pub(super) fn watch_failed(
        &mut self,
        watch: &WatchState,
        failure_report: &FailureReport,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        self.record_progress(watch);
        let phase = if watch.opened.is_some() { Phase::WatchStream } else { Phase::WatchStart };
        self.fail(phase, failure_report, fx)
    }

    /// Returns whether the watch made progress, and resets the escalation if so.
    fn record_progress(&mut self, watch: &WatchState) -> bool {
        let lasted = watch.opened.map_or(Duration::ZERO, |opened| self.now.saturating_sub(opened));
        // A list or a few events do not count: watches that fail soon after each list must not cause lists in
        // quick succession.
        let has_worked = lasted >= MIN_WORKING_DURATION;
        if has_worked {
            self.backoff.reset();
            self.has_relisted = false;
        }
        let progressed = has_worked || watch.moved || watch.has_listed;
        if progressed {
            self.tried = None;
            self.failures = 0;
        }
        progressed
    }
}
