//! The error type of all requests, and its parts.

mod reason;
mod transport;

use std::{fmt, time::Duration};

use kube_core::Status;

pub use reason::ApiReason;
pub use transport::TransportKind;

use crate::{
    decode::DecodeError,
    rest::{InvalidRequest, RequestInfo},
    transport::TransportError,
    wait::ObservedState,
};

/// The error of a request that was not sent, was rejected, or whose response could not be read.
///
/// Every message starts with the verb and the object, and ends with a remedy if one is known:
/// `get pods "x" in namespace "y": not found (404 NotFound): ...`. Neither `Display` nor `Debug` contains a request or
/// response body or a credential; a server's own error message is quoted, shortened and printable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid and was not sent.
    #[error("{attempted}: not sent: {reason}")]
    Invalid {
        /// The verb and resource of the request, as far as they were set.
        attempted: String,
        /// The reason why the request is invalid.
        reason: InvalidRequest,
    },
    /// The server rejected the request or failed to process it.
    #[error("{request}: {}", StatusSummary(status))]
    Api {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The `Status` in the response body. Derived from the HTTP status code if the body is not a `Status`.
        status: Box<Status>,
        /// The wait requested by the server, from the `Retry-After` header or the `Status`.
        retry_after: Option<Duration>,
    },
    /// The server sent a redirect. Redirects are not followed, because the credentials are for this server only.
    #[error(
        "{request}: the server responded with a redirect ({code}) to {}; redirects are not followed, configure the right server",
        host.as_deref().unwrap_or("the same host")
    )]
    Redirect {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The HTTP status.
        code: u16,
        /// The host of the redirect target, if the target is absolute.
        host: Option<String>,
    },
    /// The connection failed before the response was complete.
    #[error("{request}: {kind}{}", transport_cause(*kind, source.as_ref()))]
    Transport {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The kind of connection failure.
        kind: TransportKind,
        /// The underlying error. `None` where its text could contain a credential.
        source: Option<kube_client::Error>,
    },
    /// The deadline of the request elapsed.
    #[error("{request}: {part} within {after:?}")]
    Deadline {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The part of the response that did not arrive.
        part: Awaited,
        /// The deadline that elapsed.
        after: Duration,
    },
    /// The response exceeds one of the [`Limits`](crate::limits::Limits).
    #[error(
        "{request}: the response exceeds {limit} = {allowed}; raise it if responses this large are expected"
    )]
    Limit {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The name of the limit.
        limit: &'static str,
        /// The value of the limit.
        allowed: u64,
    },
    /// The response body does not decode to the expected type.
    #[error("{request}: the response could not be decoded: {reason}")]
    Decode {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The reason why decoding failed.
        reason: Unreadable,
    },
    /// The body of a list or watch response is malformed.
    #[error("{request}: the response could not be decoded: {source}")]
    Body {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The decode error, with its position.
        source: DecodeError,
    },
    /// A [condition](crate::wait) of an object was not met in time.
    #[error("{request}: {awaited} not observed within {after:?}; last observed: {last}{}", last_failure(source.as_deref()))]
    #[doc(alias = "ErrWatchClosed")]
    Unmet {
        /// The watch of the object.
        request: Box<RequestInfo>,
        /// The description of the condition.
        awaited: String,
        /// The time that the wait was limited to.
        after: Duration,
        /// The state observed last.
        last: Box<ObservedState>,
        /// The failure of the last request, if no state was observed since.
        source: Option<Box<Self>>,
    },
    /// The response violates the Kubernetes API protocol.
    #[error("{request}: {broken}")]
    Protocol {
        /// The request that failed.
        request: Box<RequestInfo>,
        /// The protocol rule that was violated.
        broken: &'static str,
    },
}

/// The part of a response that a deadline applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// The status line and headers.
    Head,
    /// The end of the body.
    Body,
    /// The next bytes of a stream.
    Chunk,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "no response",
            Self::Body => "no complete response",
            Self::Chunk => "no further data",
        })
    }
}

/// The reason why a response body could not be decoded, without any of its contents.
///
/// The parser's own message quotes the offending value, which may be part of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// The body is not valid JSON at this position.
    Syntax {
        /// Line, counted from 1.
        line: usize,
        /// Byte in the line, counted from 1.
        column: usize,
    },
    /// The JSON document is truncated.
    Truncated,
    /// A required field is absent.
    MissingField {
        /// The parser's message, which names the field as declared by the type.
        message: String,
    },
    /// A JSON value does not have the expected type.
    Shape {
        /// Line, counted from 1.
        line: usize,
        /// Byte in the line, counted from 1.
        column: usize,
    },
    /// The body is not valid UTF-8.
    Utf8,
    /// The body is compressed although compression was not requested.
    Encoding,
    /// The body has a media type that was not requested.
    ContentType,
}

impl From<&serde_json::Error> for Unreadable {
    fn from(error: &serde_json::Error) -> Self {
        use serde_json::error::Category;
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::Truncated,
            Category::Data => {
                // Only this message contains no text of the document.
                let message = error.to_string();
                if message.starts_with("missing field `") {
                    Self::MissingField { message }
                } else {
                    Self::Shape { line, column }
                }
            }
            Category::Syntax | Category::Io => Self::Syntax { line, column },
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { line, column } => write!(f, "not JSON at line {line} column {column}"),
            Self::Truncated => f.write_str("the JSON is truncated"),
            Self::MissingField { message } => f.write_str(message),
            Self::Shape { line, column } => {
                write!(f, "a value of an unexpected type at line {line} column {column}")
            }
            Self::Utf8 => f.write_str("not UTF-8"),
            Self::Encoding => f.write_str("it is compressed, which was not requested"),
            Self::ContentType => f.write_str("it has a media type that was not requested"),
        }
    }
}

impl Error {
    /// Returns the failed request, or `None` if it was invalid and never sent.
    pub fn request(&self) -> Option<&RequestInfo> {
        match self {
            Self::Invalid { .. } => None,
            Self::Api { request, .. }
            | Self::Redirect { request, .. }
            | Self::Transport { request, .. }
            | Self::Deadline { request, .. }
            | Self::Limit { request, .. }
            | Self::Decode { request, .. }
            | Self::Body { request, .. }
            | Self::Unmet { request, .. }
            | Self::Protocol { request, .. } => Some(request),
        }
    }

    /// Returns the `Status` of a request that the server rejected.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns the reason of a request that the server rejected.
    pub fn reason(&self) -> Option<ApiReason> {
        self.status().map(ApiReason::of)
    }

    /// Returns the wait requested by the server.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether the response is a 404: the object or the resource does not exist. To tell the two apart, use
    /// [`Error::is_object_not_found`].
    pub fn is_not_found(&self) -> bool {
        self.reason() == Some(ApiReason::NotFound)
    }

    /// Returns whether the server serves the resource and reports that the requested object does not exist.
    ///
    /// A 404 can also mean that the path, version or custom resource is not served, or come from a proxy. Treating
    /// these as "does not exist" would create or forget objects because of a misconfiguration, so only a `Status`
    /// whose details name the object counts.
    pub fn is_object_not_found(&self) -> bool {
        let Self::Api { request, status, .. } = self else {
            return false;
        };
        let (Some(name), Some(details)) = (request.name(), &status.details) else {
            return false;
        };
        self.is_not_found() && details.name == name && {
            let is_namespace_request = request.resource().is_some_and(|r| r.starts_with("namespaces"));
            is_namespace_request || details.kind != "namespaces"
        }
    }

    /// Returns whether the write was based on an old version of the object.
    pub fn is_conflict(&self) -> bool {
        self.reason() == Some(ApiReason::Conflict)
    }

    /// Returns whether an object of that name already exists.
    #[doc(alias = "IgnoreAlreadyExists")]
    pub fn is_already_exists(&self) -> bool {
        self.reason() == Some(ApiReason::AlreadyExists)
    }

    /// Returns whether the credentials are missing or not accepted.
    pub fn is_unauthorized(&self) -> bool {
        self.reason() == Some(ApiReason::Unauthorized)
    }

    /// Returns whether the credentials do not allow the request.
    pub fn is_forbidden(&self) -> bool {
        self.reason() == Some(ApiReason::Forbidden)
    }

    /// Returns whether the requested resourceVersion or continue token has expired.
    #[doc(alias = "IsResourceExpired")]
    #[doc(alias = "Gone")]
    #[doc(alias = "IsGone")]
    pub fn is_expired(&self) -> bool {
        self.reason() == Some(ApiReason::Expired)
    }

    /// Returns whether the server rejected the object as invalid.
    pub fn is_invalid(&self) -> bool {
        self.reason() == Some(ApiReason::Invalid)
    }
}

/// Returns the cause of a transport error, as the end of a message: why a credential could not be obtained, or the error of a
/// service in the stack that is more specific than its [`TransportKind`].
fn transport_cause(kind: TransportKind, source: Option<&kube_client::Error>) -> String {
    match (source.and_then(TransportError::of), source) {
        (Some(TransportError::Credential { source, .. }), _) => format!(": {source}"),
        (_, Some(kube_client::Error::Service(cause))) if kind == TransportKind::Other => {
            format!(": {}", Printable { text: &cause.to_string(), chars: MESSAGE_CHARS })
        }
        _ => String::new(),
    }
}

fn last_failure(source: Option<&Error>) -> String {
    source.map_or_else(String::new, |source| format!("; last failure: {source}"))
}

impl From<InvalidRequest> for Error {
    fn from(reason: InvalidRequest) -> Self {
        Self::Invalid { attempted: "request".to_owned(), reason }
    }
}

/// The maximum number of characters of a server's message that are quoted.
const MESSAGE_CHARS: usize = 1024;

/// A one-line summary of the `Status` of a rejected request: code, reason, message and remedy, without the details.
///
/// The form for logs, where `kube_client::Error` prints the whole `Status` in its debug representation. Long messages are
/// shortened, and control characters are replaced.
///
/// ```
/// use kube_core::Status;
/// use watchkeeper_client::error::StatusSummary;
///
/// let status = Status::failure("shutting down", "ServiceUnavailable").with_code(503);
/// assert_eq!(StatusSummary(&status).to_string(), "unavailable (503 ServiceUnavailable): shutting down");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct StatusSummary<'a>(pub &'a Status);

impl fmt::Display for StatusSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = ApiReason::of(self.0);
        write!(f, "{} ({}", reason.phrase(), self.0.code)?;
        if !self.0.reason.is_empty() {
            write!(f, " {}", Printable { text: &self.0.reason, chars: 64 })?;
        }
        f.write_str(")")?;
        if !self.0.message.is_empty() {
            write!(f, ": {}", Printable { text: &self.0.message, chars: MESSAGE_CHARS })?;
        }
        match reason.hint() {
            Some(hint) => write!(f, " [{hint}]"),
            None => Ok(()),
        }
    }
}

/// Text of unknown origin, safe for terminals and logs: on one line, at most `chars` characters long, with control
/// characters and direction marks replaced by spaces.
pub(crate) struct Printable<'a> {
    pub(crate) text: &'a str,
    pub(crate) chars: usize,
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.text.trim().chars();
        for c in chars.by_ref().take(self.chars) {
            fmt::Write::write_char(f, if alters_display(c) { ' ' } else { c })?;
        }
        if chars.next().is_some() { f.write_str("...") } else { Ok(()) }
    }
}

/// Returns whether `c` changes how the text around it is displayed: escape sequences, line separators, marks that reverse the
/// reading direction.
fn alters_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
