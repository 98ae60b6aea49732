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
    history::Evidence,
    io::Effects,
    listing::{Paging, TELL_EVERY},
    watching::{AT_LEAST, Watching},
};
use crate::reflector::{StreamingOptions, intake::Incoming};

/// The initial events of a stream, being read.
#[derive(Debug)]
pub(super) struct Initial {
    freshness: Freshness,
    timeout: Duration,
    /// The times since the server accepted the request; `None` before that.
    opened: Option<Opened>,
}

/// The times of a stream that the server has opened.
#[derive(Debug, Clone, Copy)]
struct Opened {
    at: Duration,
    /// The time of the last event.
    heard: Duration,
    /// The time of the last object that had not been received before.
    progressed: Duration,
}

/// The knowledge about the server's support of streaming lists.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Streams in a row that broke before the end of their initial events.
    broken: u32,
    /// Streaming lists are not requested before this time.
    until: Option<Duration>,
}

impl Memory {
    pub(super) fn is_worth_trying(&self, now: Duration, options: &StreamingOptions) -> bool {
        options.is_enabled && self.until.is_none_or(|until| now >= until)
    }
}

/// The remedy for a failed streaming list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// The server does not support streaming lists.
    Remember,
    /// A paginated list may succeed.
    ListOnce,
    /// The stream broke. After several in a row a paginated list is tried, once.
    Retry,
    /// A paginated list would have failed as well.
    Wait,
}

impl Remedy {
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
            | Reason::InvalidRequest => Self::Remember,
            // Permissions may cover list and not watch, and what breaks a stream of events may not break a page.
            Reason::Api(
                ApiReason::Unauthorized
                | ApiReason::Forbidden
                | ApiReason::NotFound
                | ApiReason::Internal
                | ApiReason::OtherServer,
            )
            | Reason::Decode
            | Reason::Limit
            | Reason::Protocol => Self::ListOnce,
            Reason::Api(
                ApiReason::Expired | ApiReason::ResourceVersionTooLarge | ApiReason::TooManyRequests,
            )
            | Reason::Transport(
                TransportKind::Refused
                | TransportKind::Unreachable
                | TransportKind::Tls
                | TransportKind::Credentials,
            )
            | Reason::Redirect => Self::Wait,
            _ => Self::Retry,
        }
    }
}

impl Initial {
    pub(super) fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// When the initial events are overdue.
    pub(super) fn deadline(&self, options: &StreamingOptions) -> Option<Duration> {
        self.opened.map(|opened| {
            let silence = opened.heard.saturating_add(options.silence);
            silence.min(opened.progressed.saturating_add(options.progress))
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
        self.listed = Evidence::default();
        let timeout = self.watch_timeout();
        let mut request = WatchRequest::new().send_initial_events().timeout(timeout);
        if let Freshness::NotOlderThan(version) = &freshness {
            request = request.resource_version(version);
        }
        self.state = State::Initial(Initial { freshness, timeout, opened: None });
        Action::Watch(request)
    }

    pub(super) fn initial_opened(&mut self, mut initial: Initial) -> Action {
        initial.opened = Some(Opened { at: self.now, heard: self.now, progressed: self.now });
        self.read_initial(initial)
    }

    fn read_initial(&mut self, mut initial: Initial) -> Action {
        if let Some(opened) = &mut initial.opened {
            opened.heard = self.now;
        }
        self.state = State::Initial(initial);
        self.carry_on()
    }

    pub(super) fn initial_event(
        &mut self,
        mut initial: Initial,
        kind: EventKind,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> Action {
        if kind == EventKind::Deleted {
            self.gathering.remove(incoming.identity.key());
            self.listed.deleted(&incoming.identity);
            return self.read_initial(initial);
        }
        if let Err(rejection) = &incoming.object
            && let Some(trouble) = self.strict_trouble(&incoming.identity, rejection)
        {
            // A list would bring the same object.
            return self.fail(Phase::List, &trouble, fx);
        }
        self.listed.written(&incoming.identity, incoming.content.as_ref());
        match self.gathering.put(incoming, self.options.versions) {
            Put::First => {
                if let Some(opened) = &mut initial.opened {
                    opened.progressed = self.now;
                }
            }
            Put::Again => {}
            Put::Older(identity) => {
                let message =
                    format!("the stream went back to an older version of object {:?}", identity.key());
                let trouble = Trouble::new(Self::protocol_failure(), message);
                return self.initial_failed(initial, &trouble, fx);
            }
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
            let failure = Self::protocol_failure();
            return self.follow_because(WENT_BACK, Phase::List, failure, verdict, &message, fx);
        }
        self.streaming = Memory::default();
        // The server counts the timeout from the beginning of the stream; until the list was complete it was no watch.
        let spent = initial.opened.map_or(Duration::ZERO, |opened| self.now.saturating_sub(opened.at));
        let left = initial.timeout.saturating_sub(spent);
        self.state = State::Watching(Watching::behind_list(left, self.now));
        self.is_open(fx)
    }

    /// The initial events have not ended in time. A server that means to send the bookmark sends it.
    pub(super) fn initial_timer(&mut self, initial: Initial, fx: &mut Effects<K>) -> Action {
        if initial.deadline(&self.options.streaming).is_none_or(|at| self.now < at) {
            self.state = State::Initial(initial);
            return self.carry_on();
        }
        let message = "the server did not mark the end of the initial events in time";
        let trouble = Trouble::new(Failure::new(Reason::Deadline), message);
        self.list_instead(initial, &trouble, Some("no_end"), fx)
    }

    pub(super) fn initial_ended(&mut self, initial: Initial, fx: &mut Effects<K>) -> Action {
        let lasted = initial.opened.map_or(Duration::ZERO, |opened| self.now.saturating_sub(opened.at));
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
        match Remedy::of(verdict.reason) {
            Remedy::Remember => return self.list_instead(initial, trouble, Some("refused"), fx),
            Remedy::ListOnce => return self.list_instead(initial, trouble, None, fx),
            Remedy::Wait => return self.follow(Phase::List, trouble.failure, verdict, &trouble.message, fx),
            Remedy::Retry => {}
        }
        self.streaming.broken += 1;
        if self.streaming.broken >= self.options.streaming.attempts {
            self.streaming.broken = 0;
            return self.list_instead(initial, trouble, None, fx);
        }
        // At once the first time, then with backoff.
        if self.streaming.broken > 1 && verdict.decision == Decision::Relist {
            let then = verdict.decision.next();
            verdict = Verdict { decision: Decision::BackOff { retry_after: None, then }, ..verdict };
        }
        self.follow(Phase::List, trouble.failure, verdict, &trouble.message, fx)
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
        self.start_listing(initial.freshness, Paging::Auto, fx)
    }
}
