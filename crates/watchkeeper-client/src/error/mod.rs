//! What can go wrong between a request and its result.

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
    wait::Observed,
};

/// Why a request did not give a result.
///
/// Every message opens with what was tried and on what, and ends with what to do where there is something to do:
/// `get pods "x" in namespace "y": not found (404 NotFound): ...`. Neither `Display` nor `Debug` contains a request or
/// response body or a credential; a server's own error message is quoted, shortened and printable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request was refused here and never sent.
    #[error("{attempted}: not sent: {reason}")]
    Invalid {
        /// What was being tried, as far as it was known.
        attempted: String,
        /// Why it was refused.
        reason: InvalidRequest,
    },
    /// The server answered that it did not do what was asked.
    #[error("{request}: {}", StatusSummary(status))]
    Api {
        /// What was tried.
        request: Box<RequestInfo>,
        /// What the server said. Made from the HTTP status when the answer was not a `Status`.
        status: Box<Status>,
        /// How long the server asks to wait before trying again, from the header or from the status.
        retry_after: Option<Duration>,
    },
    /// The server pointed somewhere else. Redirects are not followed: the credentials are for this server.
    #[error(
        "{request}: the server answered {code} and pointed to {}; redirects are not followed, configure the right server",
        host.as_deref().unwrap_or("the same host")
    )]
    Redirect {
        /// What was tried.
        request: Box<RequestInfo>,
        /// The HTTP status.
        code: u16,
        /// The host it pointed to, if it named one.
        host: Option<String>,
    },
    /// No complete answer arrived.
    #[error("{request}: {kind}{}", transport_cause(*kind, source.as_ref()))]
    Transport {
        /// What was tried.
        request: Box<RequestInfo>,
        /// What became of the connection.
        kind: TransportKind,
        /// The error underneath. Absent where it could repeat a credential.
        source: Option<kube_client::Error>,
    },
    /// The server took longer than it was given.
    #[error("{request}: {part} within {after:?}")]
    Deadline {
        /// What was tried.
        request: Box<RequestInfo>,
        /// What was being waited for.
        part: Awaited,
        /// How long the wait was allowed to be.
        after: Duration,
    },
    /// The answer exceeds one of the [`Limits`](crate::limits::Limits).
    #[error("{request}: the answer exceeds {limit} = {allowed}; raise it if answers this large are expected")]
    Limit {
        /// What was tried.
        request: Box<RequestInfo>,
        /// The name of the limit.
        limit: &'static str,
        /// Its value.
        allowed: u64,
    },
    /// The answer is not what its type promises.
    #[error("{request}: the answer could not be read: {reason}")]
    Decode {
        /// What was tried.
        request: Box<RequestInfo>,
        /// What is wrong with it.
        reason: Unreadable,
    },
    /// The answer is not the list or watch it should be, as far as it was read.
    #[error("{request}: the answer could not be read: {source}")]
    Body {
        /// What was tried.
        request: Box<RequestInfo>,
        /// What is wrong with it, and where.
        source: DecodeError,
    },
    /// A [condition](crate::wait) of an object was not met in time.
    #[error("{request}: {awaited} not observed within {after:?}; last observed: {last}{}", last_failure(source.as_deref()))]
    Unmet {
        /// The watch of the object.
        request: Box<RequestInfo>,
        /// The description of the condition.
        awaited: String,
        /// The time that the wait was limited to.
        after: Duration,
        /// The state observed last.
        last: Box<Observed>,
        /// The failure of the last request, if no state was observed since.
        source: Option<Box<Self>>,
    },
    /// The server answered in a way the API does not allow.
    #[error("{request}: {broken}")]
    Protocol {
        /// What was tried.
        request: Box<RequestInfo>,
        /// The rule it broke.
        broken: &'static str,
    },
}

/// What a deadline ran out on.
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
            Self::Head => "no answer",
            Self::Body => "no complete answer",
            Self::Chunk => "nothing more was received",
        })
    }
}

/// What is wrong with an answer, in words that repeat nothing of it.
///
/// The parser's own message quotes the value it stumbled over, which may be a secret's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// Not JSON, from here on.
    Syntax {
        /// Line, counted from 1.
        line: usize,
        /// Byte in the line, counted from 1.
        column: usize,
    },
    /// JSON that ends too early.
    Truncated,
    /// A required field is absent.
    MissingField {
        /// The parser's words, which name the field as the type declares it.
        message: String,
    },
    /// JSON of another shape than the type.
    Shape {
        /// Line, counted from 1.
        line: usize,
        /// Byte in the line, counted from 1.
        column: usize,
    },
    /// Not UTF-8.
    Utf8,
    /// Compressed, though that was not asked for.
    Encoding,
}

impl From<&serde_json::Error> for Unreadable {
    fn from(error: &serde_json::Error) -> Self {
        use serde_json::error::Category;
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::Truncated,
            Category::Data => {
                // This message alone is made of the type's own words and not of the document's.
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
            Self::Truncated => f.write_str("the JSON ends too early"),
            Self::MissingField { message } => f.write_str(message),
            Self::Shape { line, column } => {
                write!(f, "a value of another type than expected at line {line} column {column}")
            }
            Self::Utf8 => f.write_str("not UTF-8"),
            Self::Encoding => f.write_str("it is compressed, which was not asked for"),
        }
    }
}

impl Error {
    /// The request the error is about, unless it was refused before it was one.
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

    /// What the server said, if it said no.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Why the server said no, if it did.
    pub fn reason(&self) -> Option<ApiReason> {
        self.status().map(ApiReason::of)
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the object, or the resource itself, does not exist. Those two differ: see
    /// [`Error::is_object_not_found`].
    pub fn is_not_found(&self) -> bool {
        self.reason() == Some(ApiReason::NotFound)
    }

    /// Whether the server knows the resource and says that the very object asked for does not exist.
    ///
    /// A 404 also means that the path, the version or the custom resource is not served, or that a proxy answered.
    /// To take those for "does not exist" is to create or forget an object because of a misconfiguration, so only
    /// a `Status` whose details name the object counts.
    pub fn is_object_not_found(&self) -> bool {
        let Self::Api { request, status, .. } = self else {
            return false;
        };
        let (Some(name), Some(details)) = (request.name(), &status.details) else {
            return false;
        };
        self.is_not_found() && details.name == name && {
            let asked_for_a_namespace = request.resource().is_some_and(|r| r.starts_with("namespaces"));
            asked_for_a_namespace || details.kind != "namespaces"
        }
    }

    /// Whether the write was based on an old version of the object.
    pub fn is_conflict(&self) -> bool {
        self.reason() == Some(ApiReason::Conflict)
    }

    /// Whether an object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason() == Some(ApiReason::AlreadyExists)
    }

    /// Whether the credentials are missing or not accepted.
    pub fn is_unauthorized(&self) -> bool {
        self.reason() == Some(ApiReason::Unauthorized)
    }

    /// Whether the credentials do not allow the request.
    pub fn is_forbidden(&self) -> bool {
        self.reason() == Some(ApiReason::Forbidden)
    }

    /// Whether the version or continue token asked for is no longer kept.
    pub fn is_expired(&self) -> bool {
        self.reason() == Some(ApiReason::Expired)
    }

    /// Whether the object is not valid.
    pub fn is_invalid(&self) -> bool {
        self.reason() == Some(ApiReason::Invalid)
    }
}

/// Returns the cause of a transport error, as the end of a message: why a credential could not be obtained, or the error of a
/// service in the stack that says more than its [`TransportKind`].
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

/// How much of a server's message is repeated.
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

/// Whether `c` changes how the text around it is displayed: escape sequences, line separators, marks that reverse the
/// reading direction.
fn alters_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
