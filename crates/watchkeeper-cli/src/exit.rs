//! How the program ends: what went wrong, in words, and as a number for scripts.

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

/// The number of unusable responses in a row after which a command gives up. The informer tries another way of listing after each
/// of the first two.
const UNUSABLE_RESPONSES: u32 = 3;

/// The exit codes, as the help prints them.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  it went well
    1  it did not, in a way that none of the following is
    2  the arguments are wrong
    3  no usable configuration: no kubeconfig, no such context, a broken entry, a credential plugin that fails
    4  no connection to the API server
    5  the API server does not accept the credentials (401)
    6  the credentials do not allow it (403)
    7  the API server has no such resource or object
    8  the demonstration did not see in time what it was waiting for
  130  the demonstration was interrupted";

/// Why the program failed.
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
    /// Nobody answers.
    #[error(
        "no connection to the API server at {server}, which {origin} names: {kind}\n\
         Is the cluster running? `watchkeeper serve` starts one for trying things out, `watchkeeper demo` needs none."
    )]
    Unreachable {
        /// The URL.
        server: String,
        /// Where the URL comes from.
        origin: String,
        /// What became of the connection.
        kind: TransportKind,
    },
    /// The credentials are not accepted.
    #[error(
        "the API server at {server} does not accept the credentials of {origin} (401): {message}\n\
         They are missing or have expired. Log in again, or choose another context with --context."
    )]
    Unauthorized {
        /// The URL.
        server: String,
        /// Where the credentials come from.
        origin: String,
        /// What the server said.
        message: String,
    },
    /// The credentials do not allow it.
    #[error(
        "the credentials of {origin} do not allow it (403): {message}\n\
         Somebody with the right to has to grant that verb on that resource, in a Role or ClusterRole bound to this identity."
    )]
    Forbidden {
        /// Where the credentials come from.
        origin: String,
        /// What was tried, on what, and what the server said.
        message: String,
    },
    /// The server's responses are not those of an API server.
    #[error(
        "the API server at {server}, which {origin} names, sends responses that cannot be used: {message}\n\
         Is it an API server, and is no proxy in between? `-v` logs each attempt."
    )]
    Unusable {
        /// URL of the server.
        server: String,
        /// Kubeconfig and context that name the server.
        origin: String,
        /// Request and the defect of its response.
        message: String,
    },
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// Something that was awaited did not happen.
    #[error("waited {seconds} s in vain for {awaited}{}", hint(seen.as_deref()))]
    NotSeen {
        /// What was awaited.
        awaited: String,
        /// For how long.
        seconds: u64,
        /// What was seen instead, if anything.
        seen: Option<String>,
    },
    /// It was asked to stop before it was done.
    #[error("interrupted")]
    Interrupted,
    /// A file could not be written, or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    /// Anything else.
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
    /// The number the program ends with.
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

    /// Whether nobody is left to read the output: `watchkeeper get pods | head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What went wrong with a request.
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

    /// What went wrong with finding a resource.
    pub fn of_mapping(error: &MappingError, target: &Target) -> Self {
        match error {
            MappingError::Discovery(DiscoveryError::Request(error)) => Self::of_request(error, target),
            MappingError::NoMatch { .. } | MappingError::Ambiguous { .. } => Self::NotFound(one_line(error)),
            error => Self::Other(one_line(error)),
        }
    }

    /// What went wrong with an informer.
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

    /// Returns the failure of an informer whose server keeps sending responses that cannot be used, such as web pages, truncated
    /// lists or compressed data beyond the limits. `None` while another attempt may help.
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
