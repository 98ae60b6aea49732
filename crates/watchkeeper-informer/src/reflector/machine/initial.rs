//! A list as the beginning of a watch.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Decision, Failure, Phase, Reason, Verdict},
    error::{ApiReason, TransportKind},
    list_watch::{Bookmark, WatchRequest},
};

use super::{
    Action, EventKind, Freshness, INITIAL, Machine, Notice, State, Trouble, WENT_BACK,
    gathering::Put,
    io::Effects,
    listing::TELL_EVERY,
    watching::{AT_LEAST, Watching},
};
use crate::reflector::{StreamingOptions, intake::Incoming};

/// The initial events of a stream, being read.
#[derive(Debug)]
pub(super) struct Initial {
    freshness: Freshness,
    timeout: Duration,
    /// When the server agreed, and when it last said something.
    opened: Option<(Duration, Duration)>,
}

/// What is known of how the server takes to lists as streams.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Streams in a row that broke before the end of their initial events.
    broken: u32,
    /// Not to be tried before then.
    until: Option<Duration>,
}

impl Memory {
    pub(super) fn is_worth_trying(&self, now: Duration, options: &StreamingOptions) -> bool {
        options.is_enabled && self.until.is_none_or(|until| now >= until)
    }
}

/// What a failure says about the server and lists as streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// That it does not know of them.
    No,
    /// That a list may fare better, this once.
    AskForAList,
    /// Nothing, by itself. Too often in a row it says no.
    Broken,
    /// Nothing at all: it would have happened to a list too.
    Nothing,
}

impl Says {
    fn of(reason: Reason) -> Self {
        match reason {
            Reason::Api(
                ApiReason::BadRequest
                | ApiReason::Invalid
                | ApiReason::MethodNotAllowed
                | ApiReason::NotAcceptable
                | ApiReason::UnsupportedMediaType
                | ApiReason::OtherClient,
            )
            | Reason::InvalidRequest => Self::No,
            // One may be allowed to list and not to watch. And what breaks a stream of events may not break a page.
            Reason::Api(
                ApiReason::Unauthorized
                | ApiReason::Forbidden
                | ApiReason::NotFound
                | ApiReason::Internal
                | ApiReason::OtherServer,
            )
            | Reason::Decode
            | Reason::Limit
            | Reason::Protocol => Self::AskForAList,
            Reason::Api(
                ApiReason::Expired | ApiReason::ResourceVersionTooLarge | ApiReason::TooManyRequests,
            )
            | Reason::Transport(
                TransportKind::Refused
                | TransportKind::Unreachable
                | TransportKind::Tls
                | TransportKind::Credentials,
            )
            | Reason::Redirect => Self::Nothing,
            _ => Self::Broken,
        }
    }
}

impl Initial {
    pub(super) fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// When the initial events are overdue.
    pub(super) fn deadline(&self, options: &StreamingOptions) -> Option<Duration> {
        self.opened.map(|(opened, heard)| {
            opened.saturating_add(options.total).min(heard.saturating_add(options.silence))
        })
    }
}

impl<K> Machine<K> {
    pub(super) fn start_initial(&mut self, freshness: Freshness, fx: &mut Effects<K>) -> Action {
        fx.notice(Notice::ListStarted {
            is_streaming: true,
            cause: (self.cause != INITIAL).then_some(self.cause),
        });
        self.gathering.begin();
        let timeout = self.watch_timeout();
        let mut request = WatchRequest::new().send_initial_events().timeout(timeout);
        if let Freshness::NotOlderThan(version) = &freshness {
            request = request.resource_version(version);
        }
        self.state = State::Initial(Initial { freshness, timeout, opened: None });
        Action::Watch(request)
    }

    pub(super) fn initial_opened(&mut self, mut initial: Initial) -> Action {
        initial.opened = Some((self.now, self.now));
        self.read_initial(initial)
    }

    fn read_initial(&mut self, mut initial: Initial) -> Action {
        if let Some((_, heard)) = &mut initial.opened {
            *heard = self.now;
        }
        self.state = State::Initial(initial);
        self.carry_on()
    }

    pub(super) fn initial_event(
        &mut self,
        initial: Initial,
        kind: EventKind,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> Action {
        if kind == EventKind::Deleted {
            self.gathering.remove(incoming.identity.key());
            return self.read_initial(initial);
        }
        if let Err(rejection) = &incoming.object
            && let Some(trouble) = self.strict_trouble(&incoming.identity, rejection)
        {
            // A list would bring the same object.
            return self.fail(Phase::List, &trouble, fx);
        }
        if let Put::Older(identity) = self.gathering.put(incoming, self.options.versions) {
            let message = format!("the stream went back to an older version of object {:?}", identity.key());
            let trouble = Trouble::new(Failure::new(Reason::Protocol), message);
            return self.initial_failed(initial, &trouble, fx);
        }
        let received = self.gathering.len();
        if received.is_multiple_of(TELL_EVERY) {
            fx.notice(Notice::Listed { received, about: None });
        }
        self.read_initial(initial)
    }

    pub(super) fn initial_bookmark(
        &mut self,
        initial: Initial,
        mark: Bookmark,
        fx: &mut Effects<K>,
    ) -> Action {
        if !mark.initial_events_end {
            return self.read_initial(initial);
        }
        fx.notice(Notice::Listed { received: self.gathering.len(), about: Some(self.gathering.len()) });
        if let Err(step_back) = self.sync(mark.resource_version, &initial.freshness, fx) {
            let (verdict, message) = step_back.verdict(fx);
            return self.follow_because(WENT_BACK, Phase::List, verdict, &message, fx);
        }
        self.streaming = Memory::default();
        let opened = initial.opened.map_or(self.now, |(opened, _)| opened);
        self.state = State::Watching(Watching::behind_list(initial.timeout, opened));
        self.is_open(fx)
    }

    /// The initial events have not ended in time. A server that means to send the bookmark sends it.
    pub(super) fn initial_timer(&mut self, initial: Initial, fx: &mut Effects<K>) -> Action {
        if initial.deadline(&self.options.streaming).is_none_or(|at| self.now < at) {
            self.state = State::Initial(initial);
            return self.carry_on();
        }
        let message = "the server did not say in time that the initial events are over";
        let trouble = Trouble::new(Failure::new(Reason::Deadline), message);
        self.list_instead(initial, &trouble, Some("no_end"), fx)
    }

    pub(super) fn initial_ended(&mut self, initial: Initial, fx: &mut Effects<K>) -> Action {
        let lasted = initial.opened.map_or(Duration::ZERO, |(opened, _)| self.now.saturating_sub(opened));
        let progressed = self.gathering.len() > 0 || lasted >= AT_LEAST;
        let message = "the server ended the watch before the end of the initial events";
        self.initial_failed(initial, &Trouble::new(Failure::closed(progressed), message), fx)
    }

    pub(super) fn initial_failed(
        &mut self,
        initial: Initial,
        trouble: &Trouble,
        fx: &mut Effects<K>,
    ) -> Action {
        let mut verdict = self.judge(Phase::List, trouble.failure);
        let says = Says::of(verdict.reason);
        if says == Says::No {
            return self.list_instead(initial, trouble, Some("refused"), fx);
        }
        if says == Says::Nothing {
            return self.follow(Phase::List, verdict, &trouble.message, fx);
        }
        self.streaming.broken += 1;
        if self.streaming.broken >= self.options.streaming.attempts {
            return self.list_instead(initial, trouble, Some("broken"), fx);
        }
        if says == Says::AskForAList {
            return self.list_instead(initial, trouble, None, fx);
        }
        // Once at once, and then with care.
        if self.streaming.broken > 1 && verdict.decision == Decision::Relist {
            let then = verdict.decision.next();
            verdict = Verdict { decision: Decision::BackOff { retry_after: None, then }, ..verdict };
        }
        self.follow(Phase::List, verdict, &trouble.message, fx)
    }

    /// Asks for pages, now, and remembers to do so if there is a reason to.
    fn list_instead(
        &mut self,
        initial: Initial,
        trouble: &Trouble,
        remember: Option<&'static str>,
        fx: &mut Effects<K>,
    ) -> Action {
        let reason = self.judge(Phase::List, trouble.failure).reason;
        let verdict = Verdict { decision: Decision::Relist, reason };
        self.report(Phase::List, verdict, &trouble.message, None, fx);
        if let Some(why) = remember {
            let until = self.now.saturating_add(self.options.streaming.remember);
            self.streaming = Memory { broken: 0, until: Some(until) };
            fx.notice(Notice::StreamingGivenUp { why });
        }
        self.cause = "streaming_fallback";
        self.start_listing(initial.freshness, false, fx)
    }
}
