//! A watch.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Decision, Failure, Next, Phase, Reason, Situation, Verdict, classify},
    list_watch::{Bookmark, ListRequest, WatchRequest},
};

use super::{Action, EventKind, Machine, Notice, State, Trouble, WENT_BACK, io::Effects};
use crate::reflector::{Change, Object, WatchOptions, intake::Incoming};

/// A watch that brings nothing and does not last this long is a server that is not serving.
pub(super) const AT_LEAST: Duration = Duration::from_secs(1);

/// A watch that was asked for, or is open.
#[derive(Debug)]
pub(super) struct Watching {
    timeout: Duration,
    is_resumed: bool,
    opened: Option<Duration>,
    /// Whether it moved the version to go on from.
    moved: bool,
    /// The version that a probe on its way must not be older than.
    probe: Option<String>,
    next_probe: Option<Duration>,
}

impl Watching {
    fn asked_for(timeout: Duration, is_resumed: bool) -> Self {
        Self { timeout, is_resumed, opened: None, moved: false, probe: None, next_probe: None }
    }

    /// The rest of a stream that has just brought a list.
    pub(super) fn behind_list(timeout: Duration, opened: Duration) -> Self {
        Self { opened: Some(opened), moved: true, ..Self::asked_for(timeout, false) }
    }

    /// When something has to be done if nothing was heard.
    pub(super) fn deadline(&self, options: &WatchOptions) -> Option<Duration> {
        let dead = self.dead_at(options)?;
        Some(self.next_probe.map_or(dead, |probe| probe.min(dead)))
    }

    /// When the server must have ended it.
    fn dead_at(&self, options: &WatchOptions) -> Option<Duration> {
        Some(self.opened?.saturating_add(self.timeout).saturating_add(options.grace))
    }
}

impl<K> Machine<K> {
    pub(super) fn start_watch(&mut self, version: String, is_resumed: bool) -> Action {
        let timeout = self.watch_timeout();
        self.state = State::Watching(Watching::asked_for(timeout, is_resumed));
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
        self.backoff.well(self.now);
        fx.notice(Notice::WatchOpened);
        if let State::Watching(watching) = &mut self.state {
            if watching.is_resumed && self.options.rewind_probe.at_reconnect {
                watching.next_probe = Some(self.now);
            } else {
                watching.next_probe = self.options.rewind_probe.next(self.now);
            }
        }
        self.probe_if_due(fx);
        self.carry_on()
    }

    fn probe_if_due(&mut self, fx: &mut Effects<K>) {
        if let State::Watching(watching) = &mut self.state
            && watching.next_probe.is_some_and(|at| self.now >= at)
        {
            watching.next_probe = self.options.rewind_probe.next(self.now);
            watching.probe.clone_from(&self.version);
            fx.probe = Some(ListRequest::new().limit(1));
            fx.notice(Notice::Probed);
        }
    }

    pub(super) fn probed(
        &mut self,
        mut watching: Watching,
        found: Option<String>,
        fx: &mut Effects<K>,
    ) -> Action {
        if let (Some(seen), Some(found)) = (watching.probe.take(), found)
            && self.is_older(&found, &seen)
        {
            self.settle(&watching);
            let message = format!("the server is at resourceVersion {found}, and was at {seen} before");
            fx.notice(Notice::WentBack { what: "server", found, seen });
            let verdict = Verdict { decision: Decision::RelistFromScratch, reason: Reason::Protocol };
            return self.follow_because("rewound", Phase::WatchStream, verdict, &message.into(), fx);
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
        let Incoming { identity, object } = incoming;
        let Some(found) = identity.resource_version().map(str::to_owned) else {
            // Applied, it would leave no version to go on from.
            let message = format!("an event of object {:?} has no resourceVersion", identity.key());
            let trouble = Trouble::new(Failure::new(Reason::Protocol), message);
            return self.watch_failed(&watching, &trouble, fx);
        };
        if let Some(seen) = &self.version
            && self.is_older(&found, seen)
        {
            return self.event_went_back(&watching, identity.key(), found, seen.clone(), fx);
        }
        // What is not a change in itself still tells how far the server has come.
        let progress = || Some(Change::Bookmark { resource_version: found.clone() });
        if self.ahead.covers(&identity) {
            fx.change = progress();
        } else {
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
        let verdict = classify(situation, Failure::new(Reason::Protocol));
        self.follow_because(WENT_BACK, Phase::WatchStream, verdict, &message.into(), fx)
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
            // It brings nothing that could be lost, so there is nothing to do but not to believe it.
            Some(seen) if self.is_older(&found, seen) => {
                fx.notice(Notice::WentBack { what: "bookmark", found, seen: seen.clone() });
            }
            _ => {
                watching.moved = true;
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
        self.probe_if_due(fx);
        self.carry_on()
    }

    pub(super) fn watch_ended(&mut self, watching: &Watching, fx: &mut Effects<K>) -> Action {
        let failure = Failure::closed(self.settle(watching));
        let verdict = self.judge(Phase::WatchStream, failure);
        if verdict.decision == Decision::Resume {
            // How watches end; not a failure.
            fx.notice(Notice::WatchRestarted { reason: verdict.reason.label() });
            return self.go(Next::Resume, fx);
        }
        let message = "the server ended the watch at once, without an event".into();
        self.follow(Phase::WatchStream, verdict, &message, fx)
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
        let progressed = watching.moved || lasted >= AT_LEAST;
        if progressed {
            self.tried = None;
            self.failures = 0;
        }
        progressed
    }
}
