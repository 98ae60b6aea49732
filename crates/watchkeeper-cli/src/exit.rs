//! Failures of the program: their messages and exit codes.

use std::{io, path::PathBuf};

use watchkeeper::{
    client::{
        Error,
        classify::Reason,
        config::ConfigError,
        discovery::{DiscoveryError, MappingError},
        error::{ApiReason, TransportKind},
    },
    controller::options::ArgsError,
    informer::status::{Status, SyncError},
};

use crate::{cluster::Target, escape};

/// The number of consecutive unusable responses after which a command gives up. The informer tries another
/// way of listing after each of the first two.
const UNUSABLE_RESPONSES: u32 = 3;

/// The exit codes, as printed by `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  success
    1  a failure other than the following
    2  the arguments are wrong
    3  no usable configuration: no kubeconfig, no such context, a broken entry, a credential plugin that fails
    4  no connection to the API server
    5  the API server does not accept the credentials (401)
    6  the credentials do not allow it (403)
    7  the API server has no such resource or object
    8  the demonstration timed out waiting for an expected event
  130  the demonstration was interrupted";

/// The reason that the program failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(String),
    /// The configuration of the cluster cannot be used.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The credentials could not be obtained: a plugin failed, or a token file is empty.
    #[error("{0}")]
    Credentials(String),
    /// The API server cannot be reached.
    #[error(
        "no connection to the API server at {server}, which {origin} names: {kind}\n\
         Is the cluster running? `watchkeeper serve` starts one for trying things out, `watchkeeper demo` needs none."
    )]
    Unreachable {
        /// The URL of the server.
        server: String,
        /// The origin of the URL.
        origin: String,
        /// The kind of the connection failure.
        kind: TransportKind,
    },
    /// The API server rejects the credentials.
    #[error(
        "the API server at {server} does not accept the credentials of {origin} (401): {message}\n\
         They are missing or have expired. Log in again, or choose another context with --context."
    )]
    Unauthorized {
        /// The URL of the server.
        server: String,
        /// The origin of the credentials.
        origin: String,
        /// The message of the server.
        message: String,
    },
    /// The credentials do not permit the request.
    #[error(
        "the credentials of {origin} do not allow it (403): {message}\n\
         An administrator has to grant that verb on that resource, in a Role or ClusterRole bound to this identity."
    )]
    Forbidden {
        /// The origin of the credentials.
        origin: String,
        /// The request, and the message of the server.
        message: String,
    },
    /// The responses of the server cannot be used.
    #[error(
        "the API server at {server}, which {origin} names, sends responses that cannot be used: {message}\n\
         Is it an API server, and is no proxy in between? `-v` logs each attempt."
    )]
    Unusable {
        /// The URL of the server.
        server: String,
        /// The kubeconfig and context that name the server.
        origin: String,
        /// The request and the defect of its response.
        message: String,
    },
    /// The requested resource or object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// An expected event did not happen in time.
    #[error("timed out after {seconds} s waiting for {awaited}{}", hint(seen.as_deref()))]
    NotSeen {
        /// The expected event.
        awaited: String,
        /// The timeout in seconds.
        seconds: u64,
        /// The last observation, if any.
        seen: Option<String>,
    },
    /// The program was interrupted before it had finished.
    #[error("interrupted")]
    Interrupted,
    /// A file could not be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

impl From<ArgsError> for Failure {
    fn from(error: ArgsError) -> Self {
        match error {
            ArgsError::Config(error) => Self::Config(error),
            error => Self::Arguments(error.to_string()),
        }
    }
}

/// Returns a text that may come from a server on one line, safe to print.
fn one_line(text: &impl ToString) -> String {
    escape::line(&text.to_string()).into_owned()
}

fn hint(seen: Option<&str>) -> String {
    seen.map(|seen| format!("; last seen: {seen}")).unwrap_or_default()
}

impl Failure {
    /// Returns the exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Arguments(_) => 2,
            Self::Config(_) | Self::Credentials(_) => 3,
            Self::Unreachable { .. } => 4,
            Self::Unauthorized { .. } => 5,
            Self::Forbidden { .. } => 6,
            Self::NotFound(_) => 7,
            Self::NotSeen { .. } => 8,
            Self::Interrupted => 130,
            Self::Unusable { .. } | Self::File { .. } | Self::Output(_) | Self::Other(_) => 1,
        }
    }

    /// Returns whether the reader of the output is gone, as in `watchkeeper get pods | head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Creates the failure of a request.
    pub fn of_request(error: &Error, target: &Target) -> Self {
        match error {
            Error::Transport { kind, .. } => Self::of_transport(*kind, error, target),
            Error::Deadline { .. } => Self::unreachable(TransportKind::TimedOut, target),
            Error::Unmet { source: Some(source), .. } => Self::of_request(source, target),
            Error::Unmet { request, awaited, after, last, .. } => Self::NotSeen {
                awaited: one_line(&format!("{awaited} ({request})")),
                seconds: after.as_secs(),
                seen: Some(one_line(last)),
            },
            error => match error.reason() {
                Some(reason) => Self::of_reason(reason, error, target),
                None => Self::Other(one_line(error)),
            },
        }
    }

    /// Creates the failure of a resource lookup.
    pub fn of_mapping(error: &MappingError, target: &Target) -> Self {
        match error {
            MappingError::Discovery(DiscoveryError::Request(error)) => Self::of_request(error, target),
            MappingError::NoMatch { .. } | MappingError::Ambiguous { .. } => Self::NotFound(one_line(error)),
            error => Self::Other(one_line(error)),
        }
    }

    /// Creates the failure of an informer.
    pub fn of_sync(error: &SyncError, target: &Target) -> Self {
        match error {
            SyncError::Refused { why: Reason::Api(reason), message } => {
                Self::of_reason(*reason, message, target)
            }
            SyncError::Refused { why: Reason::Transport(kind), message } => {
                Self::of_transport(*kind, message, target)
            }
            SyncError::NotServed { message } => Self::NotFound(one_line(message)),
            error => Self::Other(one_line(error)),
        }
    }

    /// Creates the failure of an informer whose server keeps sending unusable responses, such as web pages,
    /// truncated lists or compressed data beyond the limits. Returns `None` while another attempt may
    /// succeed.
    pub(crate) fn of_unusable_responses(status: &Status, target: &Target) -> Option<Self> {
        let Status::Failing { why, message, attempts, .. } = status else { return None };
        let is_unusable = matches!(
            why,
            Reason::Decode | Reason::Limit | Reason::Protocol | Reason::Redirect | Reason::InvalidRequest
        );
        (is_unusable && *attempts >= UNUSABLE_RESPONSES).then(|| Self::Unusable {
            server: target.server.clone(),
            origin: target.origin.clone(),
            message: one_line(message),
        })
    }

    fn of_reason(reason: ApiReason, message: &impl ToString, target: &Target) -> Self {
        let message = one_line(message);
        let origin = target.origin.clone();
        match reason {
            ApiReason::Unauthorized => Self::Unauthorized { server: target.server.clone(), origin, message },
            ApiReason::Forbidden => Self::Forbidden { origin, message },
            ApiReason::NotFound => Self::NotFound(message),
            _ => Self::Other(message),
        }
    }

    fn of_transport(kind: TransportKind, message: &impl ToString, target: &Target) -> Self {
        match kind {
            TransportKind::Credentials => Self::Credentials(one_line(message)),
            kind => Self::unreachable(kind, target),
        }
    }

    fn unreachable(kind: TransportKind, target: &Target) -> Self {
        Self::Unreachable { server: target.server.clone(), origin: target.origin.clone(), kind }
    }
}
