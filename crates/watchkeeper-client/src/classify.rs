//! Classification of list and watch errors: the one table from failures to decisions.
//!
//! A list or a watch can fail with an HTTP status, an ERROR event inside a stream that started well, a broken
//! connection, a timeout, or bytes that are malformed or too large. All of them are classified here, so the
//! reaction is the same everywhere: HTTP 410 at the start of a watch means the same as an ERROR event with
//! code 410 within it.
//!
//! The functions are pure. They do not wait, count or keep state; the earlier attempts are part of the input.

use std::{fmt, time::Duration};

use kube_core::Status;

use crate::{
    Error,
    error::{ApiReason, Awaited, TransportKind},
    rest::retry_after_of_status,
};

/// The phase in which a failure occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reading a list.
    List,
    /// Between sending a watch request and receiving the response head.
    WatchStart,
    /// Reading the event stream of a watch.
    WatchStream,
}

/// The request that follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Next {
    /// Resume the watch from the last observed resourceVersion. The server sends only the missed events.
    Resume,
    /// Relist, at least as new as the last observed resourceVersion, and watch from there.
    Relist,
    /// List without a resourceVersion, which returns the latest state even if it is older than the observed
    /// one, and watch from there. This is the most expensive request for a server, and the only one that
    /// works when resourceVersions have lost their meaning.
    RelistFromScratch,
}

/// The reaction to a failure.
///
/// Decisions must not be followed in a loop. The caller passes the last attempt to the next classification
/// ([`Situation::after`]) until there is progress, and the table then returns a more thorough or slower
/// reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Resume the watch from the last observed resourceVersion immediately.
    Resume,
    /// List again immediately, at least as new as the last observed resourceVersion.
    Relist,
    /// List without a resourceVersion immediately.
    RelistFromScratch,
    /// Wait at least `retry_after`, if the server sent one, and then continue.
    BackOff {
        /// The minimum wait. The caller's own backoff applies too.
        retry_after: Option<Duration>,
        /// The request after the wait.
        then: Next,
    },
    /// Report the failure to callers that wait for this collection: it does not resolve by itself. An
    /// administrator may still resolve it (grant a role, install a custom resource), so continue to retry
    /// slowly.
    GiveUp {
        /// The request to retry with.
        then: Next,
    },
}

impl Decision {
    /// Returns the request that follows, after any wait.
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
    /// Returns this decision with its next request replaced by `least`, if that is the more thorough one.
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

/// The reason that a list or watch ended, as a label for metrics and logs. The set is closed and the labels
/// are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The server returned an error status.
    Api(ApiReason),
    /// The connection failed.
    Transport(TransportKind),
    /// The server returned a redirect.
    Redirect,
    /// The response, or its end, did not arrive in time.
    Deadline,
    /// The stream was idle for too long.
    Idle,
    /// The response could not be decoded.
    Decode,
    /// The response exceeded a limit.
    Limit,
    /// The server violated the API protocol.
    Protocol,
    /// The request could not be sent.
    InvalidRequest,
    /// The server closed the stream after it had sent events, or after a while.
    Closed,
    /// The server closed the stream immediately.
    ClosedEarly,
}

impl Reason {
    /// Returns the label.
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

/// A failure of a list or watch: its reason, and the wait that the server requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    reason: Reason,
    retry_after: Option<Duration>,
}

impl Failure {
    /// Creates a failure with the given reason and no requested wait.
    pub fn new(reason: Reason) -> Self {
        Self { reason, retry_after: None }
    }

    /// Sets the wait that the server requested.
    #[must_use]
    pub fn after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Returns the reason.
    pub fn reason(self) -> Reason {
        self.reason
    }

    /// Returns the wait that the server requested.
    pub fn retry_after(self) -> Option<Duration> {
        self.retry_after
    }

    /// Creates the failure for an ERROR event of a watch.
    pub fn of_event(status: &Status) -> Self {
        Self { reason: Reason::Api(ApiReason::of(status)), retry_after: retry_after_of_status(status) }
    }

    /// Creates the failure for a watch that the server closed. `progressed` is whether the watch delivered an
    /// event or lasted at least a second; a server that closes watches before that is not working.
    #[doc(alias = "VeryShortWatchError")]
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

/// The phase in which a failure occurred, and the last attempt that made no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    phase: Phase,
    tried: Option<Next>,
}

impl Situation {
    /// Creates the situation of the first failure since there was progress, that is, since a list was
    /// completed and its watch delivered an event.
    pub fn at(phase: Phase) -> Self {
        Self { phase, tried: None }
    }

    /// Sets the last attempt, which followed an earlier failure and made no progress.
    #[must_use]
    pub fn after(mut self, tried: Next) -> Self {
        self.tried = Some(tried);
        self
    }

    /// Returns the request for failures in which only the connection was lost.
    fn same_again(self) -> Next {
        match (self.phase, self.tried) {
            (Phase::List, Some(Next::RelistFromScratch)) => Next::RelistFromScratch,
            (Phase::List, _) => Next::Relist,
            (Phase::WatchStart | Phase::WatchStream, _) => Next::Resume,
        }
    }
}

/// A decision, and the reason to count it under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// The reaction to the failure.
    pub decision: Decision,
    /// The reason of the failure.
    pub reason: Reason,
}

/// Returns the reaction to a failed list or watch: resume, relist, relist from scratch, back off or give up.
///
/// Reflectors and waits of this project already call this function. Use it for a watch loop of your own, or to
/// find out how a failure is handled. The more attempts have failed without progress
/// ([`Situation::after`]), the more thorough or slower the reaction.
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
pub fn classify(situation: Situation, failure: Failure) -> Classification {
    let Failure { reason, retry_after } = failure;
    let back_off = |then| Decision::BackOff { retry_after, then };
    let same_again = situation.same_again();
    // If an attempt led to the same failure, the cause lies in the resumed position; avoid it by listing.
    let escalated = if situation.tried.is_some() { same_again.max(Next::Relist) } else { same_again };
    // Immediate resumption is for streams that worked. A stream that breaks again without progress is
    // delayed.
    let resume_at_once = situation.phase == Phase::WatchStream && situation.tried.is_none();

    let decision = match reason {
        // The resourceVersions do not match. Each failed attempt reduces what is assumed about them.
        Reason::Api(ApiReason::Expired) => match (situation.phase, situation.tried) {
            (_, Some(Next::RelistFromScratch)) => back_off(Next::RelistFromScratch),
            (Phase::List, _) | (_, Some(Next::Relist)) => Decision::RelistFromScratch,
            _ => Decision::Relist,
        },
        Reason::Api(ApiReason::ResourceVersionTooLarge) => match situation.tried {
            Some(Next::RelistFromScratch) => back_off(Next::RelistFromScratch),
            _ => Decision::RelistFromScratch,
        },

        // The server is overloaded or unavailable, but has lost no data. A watch resumes instead of
        // relisting, because after an outage all clients would relist at once.
        Reason::Api(
            ApiReason::TooManyRequests | ApiReason::Timeout | ApiReason::BadGateway | ApiReason::Unavailable,
        )
        | Reason::Transport(TransportKind::Refused | TransportKind::Unreachable)
        | Reason::Deadline => back_off(same_again),

        // Servers close watches regularly, and connections break.
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

        // The cause may be an event that the server cannot convert, or a frame that cannot be decoded. Retry
        // once from before it, then avoid it by listing.
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

        // An administrator has to resolve this. If only a permission is missing, the cache stays valid.
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
        // The server may not accept the resourceVersion, such as when a different kind of server is behind
        // the same address.
        Reason::Api(ApiReason::BadRequest | ApiReason::Invalid) | Reason::InvalidRequest => {
            Decision::GiveUp { then: Next::RelistFromScratch }
        }
    };
    Classification { decision, reason }
}
