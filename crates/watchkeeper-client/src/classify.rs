//! One table from errors to what to do next.
//!
//! A list or a watch can fail as an HTTP status, as an ERROR event inside a stream that began well, as a broken
//! connection, as silence, as bytes that make no sense or are too many. Everyone who follows a collection asks here
//! what to do about it, so there is one answer to each, and HTTP 410 at the start of a watch means the same as the
//! event that says 410 in the middle.
//!
//! The functions are pure. They do not wait, count or remember; what was tried before is part of the question.

use std::{fmt, time::Duration};

use kube_core::Status;

use crate::{
    Error,
    error::{ApiReason, Awaited, TransportKind},
    rest::retry_after_of_status,
};

/// Where it went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// While reading the list.
    List,
    /// Between asking for a watch and the head of its answer.
    WatchStart,
    /// In the stream of events.
    WatchStream,
}

/// A way to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Next {
    /// Watch again from the last version seen. Costs the server nothing but the events that were missed.
    Resume,
    /// List again, at least as new as the last version seen, and watch from there.
    Relist,
    /// List with no version, which asks for the newest there is, even if that is older than what was seen; then
    /// watch from there. The dearest for a server, and the only way out when versions no longer mean anything.
    RelistFromScratch,
}

/// What to do next.
///
/// None of these is leave to go round in circles: who follows a decision tells the next question what was tried
/// ([`Situation::after`]) until there is progress, and the table then answers with something dearer or slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Watch again from the last version seen, now.
    Resume,
    /// List again, now.
    Relist,
    /// List with no version, now.
    RelistFromScratch,
    /// Wait, at least `retry_after` if the server said so, and then go on.
    BackOff {
        /// The least to wait. The follower's own backoff applies too.
        retry_after: Option<Duration>,
        /// How to go on.
        then: Next,
    },
    /// It will not pass by itself: tell whoever waits for this collection, now. It may still be mended from outside
    /// (a role granted, a custom resource installed), so go on trying, slowly.
    GiveUp {
        /// How to go on.
        then: Next,
    },
}

impl Decision {
    /// How it goes on, after whatever wait.
    pub fn next(self) -> Next {
        match self {
            Self::Resume => Next::Resume,
            Self::Relist => Next::Relist,
            Self::RelistFromScratch => Next::RelistFromScratch,
            Self::BackOff { then, .. } | Self::GiveUp { then } => then,
        }
    }
}

impl Decision {
    /// Returns this decision with its way to go on replaced by `least`, if that is the more thorough one.
    #[must_use]
    pub fn at_least(self, least: Next) -> Self {
        let next = self.next().max(least);
        match self {
            Self::BackOff { retry_after, .. } => Self::BackOff { retry_after, then: next },
            Self::GiveUp { .. } => Self::GiveUp { then: next },
            Self::Resume | Self::Relist | Self::RelistFromScratch => next.into(),
        }
    }
}

impl From<Next> for Decision {
    fn from(next: Next) -> Self {
        match next {
            Next::Resume => Self::Resume,
            Next::Relist => Self::Relist,
            Next::RelistFromScratch => Self::RelistFromScratch,
        }
    }
}

/// Why a list or watch ended, as a label for metrics and logs. The set is closed and the labels are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The server said no.
    Api(ApiReason),
    /// The connection failed.
    Transport(TransportKind),
    /// The server pointed somewhere else.
    Redirect,
    /// The answer, or its end, did not come in time.
    Deadline,
    /// The stream was silent for too long.
    Idle,
    /// The answer could not be read.
    Decode,
    /// The answer was larger than allowed.
    Limit,
    /// The server broke a rule of the API.
    Protocol,
    /// The request could not be sent.
    InvalidRequest,
    /// The server ended the stream after there had been events, or after a while.
    Closed,
    /// The server ended the stream at once.
    ClosedEarly,
}

impl Reason {
    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Api(reason) => match reason {
                ApiReason::BadRequest => "bad_request",
                ApiReason::Unauthorized => "unauthorized",
                ApiReason::Forbidden => "forbidden",
                ApiReason::NotFound => "not_found",
                ApiReason::MethodNotAllowed => "method_not_allowed",
                ApiReason::NotAcceptable => "not_acceptable",
                ApiReason::Timeout => "server_timeout",
                ApiReason::AlreadyExists => "already_exists",
                ApiReason::Conflict => "conflict",
                ApiReason::Expired => "expired",
                ApiReason::RequestTooLarge => "request_too_large",
                ApiReason::UnsupportedMediaType => "unsupported_media_type",
                ApiReason::Invalid => "invalid",
                ApiReason::TooManyRequests => "too_many_requests",
                ApiReason::Internal => "internal_error",
                ApiReason::BadGateway => "bad_gateway",
                ApiReason::Unavailable => "unavailable",
                ApiReason::ResourceVersionTooLarge => "resource_version_too_large",
                ApiReason::OtherClient => "client_error",
                ApiReason::OtherServer => "server_error",
            },
            Self::Transport(kind) => match kind {
                TransportKind::Refused => "connection_refused",
                TransportKind::Reset => "connection_reset",
                TransportKind::UnexpectedEof => "unexpected_eof",
                TransportKind::TimedOut => "connection_timeout",
                TransportKind::Unreachable => "unreachable",
                TransportKind::Tls => "tls",
                TransportKind::Malformed => "malformed_http",
                TransportKind::Credentials => "credentials",
                TransportKind::Other => "transport",
            },
            Self::Redirect => "redirect",
            Self::Deadline => "deadline",
            Self::Idle => "idle",
            Self::Decode => "decode",
            Self::Limit => "limit",
            Self::Protocol => "protocol",
            Self::InvalidRequest => "invalid_request",
            Self::Closed => "closed",
            Self::ClosedEarly => "closed_early",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// What went wrong: why, and how long the server asks to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    reason: Reason,
    retry_after: Option<Duration>,
}

impl Failure {
    /// A failure whose reason is known, with no wait asked for.
    pub fn new(reason: Reason) -> Self {
        Self { reason, retry_after: None }
    }

    /// Sets how long the server asks to wait.
    #[must_use]
    pub fn after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Returns the reason.
    pub fn reason(self) -> Reason {
        self.reason
    }

    /// Returns how long the server asks to wait.
    pub fn retry_after(self) -> Option<Duration> {
        self.retry_after
    }

    /// An ERROR event of a watch.
    pub fn of_event(status: &Status) -> Self {
        Self { reason: Reason::Api(ApiReason::of(status)), retry_after: retry_after_of_status(status) }
    }

    /// A watch that the server ended. `progressed` says whether it brought an event or at least lasted a second; one
    /// that did neither is a server that is not serving.
    pub fn closed(progressed: bool) -> Self {
        Self::new(if progressed { Reason::Closed } else { Reason::ClosedEarly })
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let reason = match error {
            Error::Api { status, .. } => Reason::Api(ApiReason::of(status)),
            Error::Transport { kind, .. } => Reason::Transport(*kind),
            Error::Redirect { .. } => Reason::Redirect,
            Error::Deadline { part: Awaited::Chunk, .. } => Reason::Idle,
            Error::Deadline { .. } | Error::Unmet { .. } => Reason::Deadline,
            Error::Limit { .. } => Reason::Limit,
            Error::Decode { .. } | Error::Body { .. } => Reason::Decode,
            Error::Protocol { .. } => Reason::Protocol,
            Error::Invalid { .. } => Reason::InvalidRequest,
        };
        Self { reason, retry_after: error.retry_after() }
    }
}

/// Where it went wrong, and what was tried since there was last progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    phase: Phase,
    tried: Option<Next>,
}

impl Situation {
    /// The first failure since there was progress: since a list was read whole and its watch brought something.
    pub fn at(phase: Phase) -> Self {
        Self { phase, tried: None }
    }

    /// A failure after `tried` was done about an earlier one without progress in between.
    #[must_use]
    pub fn after(mut self, tried: Next) -> Self {
        self.tried = Some(tried);
        self
    }

    /// What to go on with where nothing but the connection was lost.
    fn same_again(self) -> Next {
        match (self.phase, self.tried) {
            (Phase::List, Some(Next::RelistFromScratch)) => Next::RelistFromScratch,
            (Phase::List, _) => Next::Relist,
            (Phase::WatchStart | Phase::WatchStream, _) => Next::Resume,
        }
    }
}

/// What was decided, and the reason to count it under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What to do.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
}

/// Decides what to do about a failure.
///
/// ```
/// use kube_core::Status;
/// use watchkeeper_client::classify::{Decision, Failure, Next, Phase, Situation, classify};
///
/// let gone = Failure::of_event(&Status::failure("too old resource version", "Expired").with_code(410));
/// let here = Situation::at(Phase::WatchStream);
/// assert_eq!(classify(here, gone).decision, Decision::Relist);
/// assert_eq!(classify(here.after(Next::Relist), gone).decision, Decision::RelistFromScratch);
/// ```
pub fn classify(situation: Situation, failure: Failure) -> Verdict {
    let Failure { reason, retry_after } = failure;
    let back_off = |then| Decision::BackOff { retry_after, then };
    let same_again = situation.same_again();
    // A way that led back to the same failure means that the trouble is in what is being resumed; go around it.
    let escalated = if situation.tried.is_some() { same_again.max(Next::Relist) } else { same_again };
    // Resuming at once is for streams that worked. One that breaks again before it brought anything is paced.
    let resume_at_once = situation.phase == Phase::WatchStream && situation.tried.is_none();

    let decision = match reason {
        // The versions do not agree. The more was tried, the less is assumed about them.
        Reason::Api(ApiReason::Expired) => match (situation.phase, situation.tried) {
            (_, Some(Next::RelistFromScratch)) => back_off(Next::RelistFromScratch),
            (Phase::List, _) | (_, Some(Next::Relist)) => Decision::RelistFromScratch,
            _ => Decision::Relist,
        },
        Reason::Api(ApiReason::ResourceVersionTooLarge) => match situation.tried {
            Some(Next::RelistFromScratch) => back_off(Next::RelistFromScratch),
            _ => Decision::RelistFromScratch,
        },

        // The server is busy or away. It has lost nothing, so a watch need not list again when it is back: after an
        // outage that would be every client at once.
        Reason::Api(
            ApiReason::TooManyRequests | ApiReason::Timeout | ApiReason::BadGateway | ApiReason::Unavailable,
        )
        | Reason::Transport(TransportKind::Refused | TransportKind::Unreachable)
        | Reason::Deadline => back_off(same_again),

        // Servers end watches as a matter of course, and connections die.
        Reason::Closed => Decision::from(same_again),
        Reason::Idle
        | Reason::Transport(
            TransportKind::Reset
            | TransportKind::UnexpectedEof
            | TransportKind::TimedOut
            | TransportKind::Malformed
            | TransportKind::Other,
        ) => {
            if resume_at_once {
                Decision::Resume
            } else {
                back_off(same_again)
            }
        }

        // It may be an event the server cannot convert, or a frame that cannot be read: once more from before it, then
        // around it by listing.
        Reason::Api(ApiReason::Internal | ApiReason::OtherServer) | Reason::ClosedEarly => {
            back_off(escalated)
        }
        Reason::Decode | Reason::Protocol => {
            if resume_at_once {
                Decision::Resume
            } else {
                back_off(escalated)
            }
        }
        // The same event would be too large again.
        Reason::Limit => back_off(same_again.max(Next::Relist)),

        // Someone has to mend it. What the cache holds stays true where only permission is missing.
        Reason::Api(ApiReason::Unauthorized | ApiReason::Forbidden)
        | Reason::Transport(TransportKind::Tls | TransportKind::Credentials)
        | Reason::Redirect => Decision::GiveUp { then: same_again },
        Reason::Api(
            ApiReason::NotFound
            | ApiReason::MethodNotAllowed
            | ApiReason::NotAcceptable
            | ApiReason::UnsupportedMediaType
            | ApiReason::RequestTooLarge
            | ApiReason::AlreadyExists
            | ApiReason::Conflict
            | ApiReason::OtherClient,
        ) => Decision::GiveUp { then: same_again.max(Next::Relist) },
        // The version may be what the server cannot make sense of: another kind of server behind the same address.
        Reason::Api(ApiReason::BadRequest | ApiReason::Invalid) | Reason::InvalidRequest => {
            Decision::GiveUp { then: Next::RelistFromScratch }
        }
    };
    Verdict { decision, reason }
}
