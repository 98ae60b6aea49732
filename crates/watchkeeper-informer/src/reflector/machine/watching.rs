//! A watch.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Decision, Failure, Next, Phase, Reason, Situation, classify},
    list_watch::{Bookmark, WatchRequest},
};

use super::{
    Action, EventKind, Found, Machine, Notice, State, Trouble, WENT_BACK,
    history::{Judgement, Verification},
    io::Effects,
};
use crate::{
    reflector::{Change, Object, VersionOrder, WatchOptions, intake::Incoming},
    resource_version,
};

/// A watch that brings nothing and does not last this long is a server that is not serving.
pub(super) const AT_LEAST: Duration = Duration::from_secs(1);

/// A watch that was asked for, or is open.
#[derive(Debug)]
pub(super) struct Watching {
    timeout: Duration,
    /// The version it replays changes from, if that is older than the version reached.
    replays_from: Option<String>,
    opened: Option<Duration>,
    /// Whether it moved the version to go on from.
    moved: bool,
    /// Whether it began with a list, which is progress too.
    has_listed: bool,
    /// A verification that is going on beside it.
    verification: Option<Verification>,
    next_check: Option<Duration>,
}

impl Watching {
    fn asked_for(timeout: Duration, replays_from: Option<String>) -> Self {
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

    /// Returns the rest of a stream that has just brought a list, as of `now`.
    pub(super) fn behind_list(timeout: Duration, now: Duration) -> Self {
        Self { opened: Some(now), has_listed: true, ..Self::asked_for(timeout, None) }
    }

    /// When something has to be done if nothing was heard.
    pub(super) fn deadline(&self, options: &WatchOptions) -> Option<Duration> {
        let dead = self.dead_at(options)?;
        Some(self.next_check.map_or(dead, |check| check.min(dead)))
    }

    /// Returns whether the server ended it no sooner than it was asked to, give or take a second.
    fn was_ended_as_requested(&self, now: Duration) -> bool {
        let at = self.opened.map(|opened| opened.saturating_add(self.timeout));
        at.is_some_and(|at| now.saturating_add(Duration::from_secs(1)) >= at)
    }

    /// When the server must have ended it.
    fn dead_at(&self, options: &WatchOptions) -> Option<Duration> {
        Some(self.opened?.saturating_add(self.timeout).saturating_add(options.grace))
    }
}

impl<K> Machine<K> {
    /// Watches from the version of a list.
    pub(super) fn start_watch(&mut self, version: String) -> Action {
        self.watch_from(version, None)
    }

    /// Watches again: from the version reached if the last watch ended when it should, otherwise from the last change, so
    /// that a server with another history shows what it did since.
    pub(super) fn resume_watch(&mut self) -> Action {
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

    fn watch_from(&mut self, version: String, replays_from: Option<String>) -> Action {
        let timeout = self.watch_timeout();
        self.state = State::Watching(Watching::asked_for(timeout, replays_from));
        Action::Watch(WatchRequest::new().resource_version(version).timeout(timeout))
    }

    pub(super) fn watch_timeout(&mut self) -> Duration {
        Duration::from_secs(self.random.u64(self.options.watch.timeout_seconds()))
    }

    pub(super) fn watch_opened(&mut self, watching: Watching, fx: &mut Effects<K>) -> Action {
        self.state = State::Watching(Watching { opened: Some(self.now), ..watching });
        self.is_open(fx)
    }

    /// A watch is open; its state is set.
    pub(super) fn is_open(&mut self, fx: &mut Effects<K>) -> Action {
        fx.notice(Notice::WatchOpened);
        if let State::Watching(watching) = &mut self.state {
            watching.next_check = self.options.history_check.next(self.now);
        }
        self.carry_on()
    }

    fn check_if_due(&mut self, fx: &mut Effects<K>) {
        let verification = self.verification();
        if let State::Watching(watching) = &mut self.state
            && watching.next_check.is_some_and(|at| self.now >= at)
        {
            watching.next_check = self.options.history_check.next(self.now);
            if self.options.versions == VersionOrder::Ordered
                && let Some(verification) = verification
            {
                fx.check = Some(verification.request());
                watching.verification = Some(verification);
                fx.notice(Notice::HistoryChecked);
            }
        }
    }

    /// Takes the response to a check made while the watch is open. Without evidence the watch goes on: that it has not been
    /// interrupted is evidence enough.
    pub(super) fn checked_beside(
        &mut self,
        mut watching: Watching,
        response: &Result<Found, Trouble>,
        fx: &mut Effects<K>,
    ) -> Action {
        if let Some(mut verification) = watching.verification.take() {
            match verification.judge(response) {
                Judgement::Ask => {
                    fx.check = Some(verification.request());
                    watching.verification = Some(verification);
                }
                Judgement::Refuted(why) => {
                    self.settle(&watching);
                    return self.history_replaced(&why, Phase::WatchStream, fx);
                }
                Judgement::Confirmed | Judgement::Unconfirmed | Judgement::Failed => {}
            }
        }
        self.state = State::Watching(watching);
        self.carry_on()
    }

    pub(super) fn watch_event(
        &mut self,
        mut watching: Watching,
        kind: EventKind,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> Action {
        let Incoming { identity, object, content } = incoming;
        let Some(found) = identity.resource_version().map(str::to_owned) else {
            // Applied, it would leave no version to go on from.
            let message = format!("an event of object {:?} has no resourceVersion", identity.key());
            let trouble = Trouble::new(Failure::new(Reason::Protocol), message);
            return self.watch_failed(&watching, &trouble, fx);
        };
        if let Some(seen) = &self.version {
            if let Some(from) = &watching.replays_from
                && resource_version::is_older(from, &found)
                && !resource_version::is_older(seen, &found)
            {
                // The bookmark at `seen` covered this version, and in the history followed nothing happened there.
                let why = format!(
                    "the watch brought resourceVersion {found} of object {:?}, and no change of this collection up to {seen} \
                     was expected",
                    identity.key()
                );
                self.settle(&watching);
                return self.history_replaced(&why, Phase::WatchStream, fx);
            }
            if self.is_older(&found, seen) {
                return self.event_went_back(&watching, identity.key(), found, seen.clone(), fx);
            }
        }
        // What is not a change in itself still tells how far the server has come.
        let progress = || Some(Change::Bookmark { resource_version: found.clone() });
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
                    fx.change = Some(Change::Deleted { identity, object: object.ok() });
                }
                (kind, Ok(object)) => {
                    self.release(identity.key(), fx);
                    let object = Object { identity, object };
                    fx.change = Some(match kind {
                        EventKind::Added => Change::Added(object),
                        _ => Change::Updated(object),
                    });
                }
                (_, Err(rejection)) => {
                    if let Some(trouble) = self.strict_trouble(&identity, &rejection) {
                        return self.watch_failed(&watching, &trouble, fx);
                    }
                    self.set_aside(&identity, &rejection, fx);
                    fx.change = progress();
                }
            }
        }
        watching.moved |= self.version.as_ref() != Some(&found);
        watching.replays_from = None;
        self.changed = Some(found.clone());
        self.version = Some(found);
        self.state = State::Watching(watching);
        self.carry_on()
    }

    fn event_went_back(
        &mut self,
        watching: &Watching,
        key: &str,
        found: String,
        seen: String,
        fx: &mut Effects<K>,
    ) -> Action {
        self.settle(watching);
        let message = format!(
            "the watch brought resourceVersion {found} of object {key:?} after {seen}; \
             set ReflectorOptions::versions to Opaque if this server's versions do not count up"
        );
        fx.notice(Notice::WentBack { what: "event", found, seen });
        // To resume from a version the server does not keep to leads nowhere; a list shows what is.
        let tried = self.tried.unwrap_or(Next::Resume);
        let situation = Situation::at(Phase::WatchStream).after(tried);
        let failure = Self::protocol_failure();
        let verdict = classify(situation, failure);
        self.follow_because(WENT_BACK, Phase::WatchStream, failure, verdict, &message.into(), fx)
    }

    pub(super) fn watch_bookmark(
        &mut self,
        mut watching: Watching,
        mark: Bookmark,
        fx: &mut Effects<K>,
    ) -> Action {
        let found = mark.resource_version;
        match &self.version {
            Some(seen) if *seen == found => {}
            // The server is on its way from the last change to the version reached.
            Some(seen) if watching.replays_from.is_some() && self.is_older(&found, seen) => {}
            // It brings nothing that could be lost, so there is nothing to do but not to believe it.
            Some(seen) if self.is_older(&found, seen) => {
                fx.notice(Notice::WentBack { what: "bookmark", found, seen: seen.clone() });
            }
            _ => {
                watching.moved = true;
                watching.replays_from = None;
                fx.change = Some(Change::Bookmark { resource_version: found.clone() });
                self.version = Some(found);
            }
        }
        self.state = State::Watching(watching);
        self.carry_on()
    }

    pub(super) fn watch_timer(&mut self, watching: Watching, fx: &mut Effects<K>) -> Action {
        if watching.dead_at(&self.options.watch).is_some_and(|at| self.now >= at) {
            let message = "the watch was neither ended by the server nor heard of in time";
            return self.watch_failed(&watching, &Trouble::new(Failure::new(Reason::Idle), message), fx);
        }
        self.state = State::Watching(watching);
        self.check_if_due(fx);
        self.carry_on()
    }

    pub(super) fn watch_ended(&mut self, watching: &Watching, fx: &mut Effects<K>) -> Action {
        let failure = Failure::closed(self.settle(watching));
        let verdict = self.judge(Phase::WatchStream, failure);
        if verdict.decision == Decision::Resume {
            // The usual end of a watch is not a failure.
            self.trust.connection_lost();
            self.is_renewal = watching.was_ended_as_requested(self.now);
            fx.notice(Notice::WatchRestarted { reason: verdict.reason.label() });
            return self.go(Next::Resume, fx);
        }
        let message = "the server ended the watch at once, without an event".into();
        self.follow(Phase::WatchStream, failure, verdict, &message, fx)
    }

    pub(super) fn watch_failed(
        &mut self,
        watching: &Watching,
        trouble: &Trouble,
        fx: &mut Effects<K>,
    ) -> Action {
        self.settle(watching);
        let phase = if watching.opened.is_some() { Phase::WatchStream } else { Phase::WatchStart };
        self.fail(phase, trouble, fx)
    }

    /// Whether the watch got anywhere. If so, what was tried to get there is no longer of interest.
    fn settle(&mut self, watching: &Watching) -> bool {
        let lasted = watching.opened.map_or(Duration::ZERO, |opened| self.now.saturating_sub(opened));
        // Neither a list nor an event or two count here: a watch that fails soon behind each list must not be answered with
        // lists as fast as the server sends them.
        let has_worked = lasted >= AT_LEAST;
        if has_worked {
            self.backoff.reset();
            self.has_relisted = false;
        }
        let progressed = has_worked || watching.moved || watching.has_listed;
        if progressed {
            self.tried = None;
            self.failures = 0;
        }
        progressed
    }
}
