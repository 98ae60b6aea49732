//! Streaming lists: lists as the initial events of a watch.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Classification, Decision, Failure, Phase, Reason},
    error::{ApiReason, TransportKind},
    list_watch::{Bookmark, WatchRequest},
};

use super::{
    DriverAction, EventKind, FailureReport, INITIAL, ListFreshness, Machine, ReflectorEvent, State,
    WENT_BACK,
    history::HistoryEvidence,
    io::Effects,
    list_assembly::Put,
    paged_list::{Paging, REPORT_EVERY},
    watch::{MIN_WORKING_DURATION, WatchState},
};
use crate::reflector::{StreamingOptions, intake::Incoming};

/// A streaming list that is being read.
#[derive(Debug)]
pub(super) struct StreamingList {
    freshness: ListFreshness,
    timeout: Duration,
    /// The times of the stream, or `None` before the server accepted the request.
    opened: Option<Opened>,
}

/// The times of an accepted stream.
#[derive(Debug, Clone, Copy)]
struct Opened {
    at: Duration,
    /// The time of the last event.
    received: Duration,
    /// The time of the last object that was not received before.
    progressed: Duration,
}

/// The server's support for streaming lists.
#[derive(Debug, Default)]
pub(super) struct StreamingSupport {
    /// The number of consecutive streams that broke before the end of their initial events.
    broken: u32,
    /// The time before which streaming lists are not requested.
    until: Option<Duration>,
}

impl StreamingSupport {
    pub(super) fn is_worth_trying(&self, now: Duration, options: &StreamingOptions) -> bool {
        options.is_enabled && self.until.is_none_or(|until| now >= until)
    }
}

/// The remedy for a failed streaming list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Remember that the server does not support streaming lists.
    Remember,
    /// Request a paginated list, once.
    ListOnce,
    /// Retry the stream. After several failures, request a paginated list, once.
    Retry,
    /// Wait, because a paginated list would fail as well.
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
            // Permissions may include list but not watch, and a failure of the event stream may not affect
            // pages.
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

impl StreamingList {
    pub(super) fn freshness(&self) -> &ListFreshness {
        &self.freshness
    }

    /// Returns the time at which the initial events are overdue.
    pub(super) fn deadline(&self, options: &StreamingOptions) -> Option<Duration> {
        self.opened.map(|opened| {
            let silence = opened.received.saturating_add(options.silence);
            silence.min(opened.progressed.saturating_add(options.progress))
        })
    }
}

impl<K> Machine<K> {
    pub(super) fn start_initial(&mut self, freshness: ListFreshness, fx: &mut Effects<K>) -> DriverAction {
        fx.event(ReflectorEvent::ListStarted {
            is_streaming: true,
            cause: (self.cause != INITIAL).then_some(self.cause),
        });
        self.assembly.begin();
        self.listed = HistoryEvidence::default();
        let timeout = self.watch_timeout();
        let mut request = WatchRequest::new().send_initial_events().timeout(timeout);
        if let ListFreshness::NotOlderThan(version) = &freshness {
            request = request.resource_version(version);
        }
        self.state = State::StreamingList(StreamingList { freshness, timeout, opened: None });
        DriverAction::Watch(request)
    }

    pub(super) fn initial_opened(&mut self, mut streaming: StreamingList) -> DriverAction {
        streaming.opened = Some(Opened { at: self.now, received: self.now, progressed: self.now });
        self.read_initial(streaming)
    }

    fn read_initial(&mut self, mut streaming: StreamingList) -> DriverAction {
        if let Some(opened) = &mut streaming.opened {
            opened.received = self.now;
        }
        self.state = State::StreamingList(streaming);
        self.continue_state()
    }

    pub(super) fn initial_event(
        &mut self,
        mut streaming: StreamingList,
        kind: EventKind,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        if kind == EventKind::Deleted {
            self.assembly.remove(incoming.identity.key());
            self.listed.deleted(&incoming.identity);
            return self.read_initial(streaming);
        }
        if let Err(rejection) = &incoming.object
            && let Some(failure_report) = self.strict_failure(&incoming.identity, rejection)
        {
            // A paginated list would contain the same object.
            return self.fail(Phase::List, &failure_report, fx);
        }
        self.listed.written(&incoming.identity, incoming.content.as_ref());
        match self.assembly.put(incoming, self.options.versions) {
            Put::First => {
                if let Some(opened) = &mut streaming.opened {
                    opened.progressed = self.now;
                }
            }
            Put::Again => {}
            Put::Older(identity) => {
                let message =
                    format!("the stream went back to an older version of object {:?}", identity.key());
                let failure_report = FailureReport::new(Self::protocol_failure(), message);
                return self.initial_failed(streaming, &failure_report, fx);
            }
        }
        let received = self.assembly.len();
        if received.is_multiple_of(REPORT_EVERY) {
            fx.event(ReflectorEvent::Listed { received, estimated_total: None });
        }
        self.read_initial(streaming)
    }

    pub(super) fn initial_bookmark(
        &mut self,
        streaming: StreamingList,
        mark: Bookmark,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        if !mark.initial_events_end {
            return self.read_initial(streaming);
        }
        fx.event(ReflectorEvent::Listed {
            received: self.assembly.len(),
            estimated_total: Some(self.assembly.len()),
        });
        if let Err(step_back) = self.sync(mark.resource_version, &streaming.freshness, fx) {
            let (classification, message) = step_back.classification(fx);
            let failure = Self::protocol_failure();
            return self.execute_with_cause(WENT_BACK, Phase::List, failure, classification, &message, fx);
        }
        self.streaming = StreamingSupport::default();
        // The server counts the timeout from the start of the stream, and the watch starts at the end of the
        // list.
        let spent = streaming.opened.map_or(Duration::ZERO, |opened| self.now.saturating_sub(opened.at));
        let left = streaming.timeout.saturating_sub(spent);
        self.state = State::Watch(WatchState::behind_list(left, self.now));
        self.record_open(fx)
    }

    /// Handles initial events that did not end in time. A server that supports streaming lists sends the
    /// bookmark.
    pub(super) fn initial_timer(&mut self, streaming: StreamingList, fx: &mut Effects<K>) -> DriverAction {
        if streaming.deadline(&self.options.streaming).is_none_or(|at| self.now < at) {
            self.state = State::StreamingList(streaming);
            return self.continue_state();
        }
        let message = "the server did not mark the end of the initial events in time";
        let failure_report = FailureReport::new(Failure::new(Reason::Deadline), message);
        self.list_instead(streaming, &failure_report, Some("no_end"), fx)
    }

    pub(super) fn initial_ended(&mut self, streaming: StreamingList, fx: &mut Effects<K>) -> DriverAction {
        let lasted = streaming.opened.map_or(Duration::ZERO, |opened| self.now.saturating_sub(opened.at));
        let progressed = self.assembly.len() > 0 || lasted >= MIN_WORKING_DURATION;
        let message = "the server ended the watch before the end of the initial events";
        self.initial_failed(streaming, &FailureReport::new(Failure::closed(progressed), message), fx)
    }

    pub(super) fn initial_failed(
        &mut self,
        streaming: StreamingList,
        failure_report: &FailureReport,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        let mut classification = self.classify(Phase::List, failure_report.failure);
        match Remedy::of(classification.reason) {
            Remedy::Remember => return self.list_instead(streaming, failure_report, Some("refused"), fx),
            Remedy::ListOnce => return self.list_instead(streaming, failure_report, None, fx),
            Remedy::Wait => {
                return self.execute(
                    Phase::List,
                    failure_report.failure,
                    classification,
                    &failure_report.message,
                    fx,
                );
            }
            Remedy::Retry => {}
        }
        self.streaming.broken += 1;
        if self.streaming.broken >= self.options.streaming.attempts {
            self.streaming.broken = 0;
            return self.list_instead(streaming, failure_report, None, fx);
        }
        // Immediately the first time, then with backoff.
        if self.streaming.broken > 1 && classification.decision == Decision::Relist {
            let then = classification.decision.next();
            classification =
                Classification { decision: Decision::BackOff { retry_after: None, then }, ..classification };
        }
        self.execute(Phase::List, failure_report.failure, classification, &failure_report.message, fx)
    }

    /// Starts a paginated list, and remembers to do so if `remember` has a reason.
    fn list_instead(
        &mut self,
        streaming: StreamingList,
        failure_report: &FailureReport,
        remember: Option<&'static str>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        let reason = self.classify(Phase::List, failure_report.failure).reason;
        let classification = Classification { decision: Decision::Relist, reason };
        self.report(Phase::List, classification, &failure_report.message, None, fx);
        if let Some(why) = remember {
            let until = self.now.saturating_add(self.options.streaming.remember);
            self.streaming = StreamingSupport { broken: 0, until: Some(until) };
            fx.event(ReflectorEvent::StreamingFallback { why });
        }
        self.cause = "streaming_fallback";
        self.start_listing(streaming.freshness, Paging::Auto, fx)
    }
}
