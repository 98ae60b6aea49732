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
    informer::status::SyncError,
};

use crate::cluster::Target;

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
            Self::File { .. } | Self::Output(_) | Self::Other(_) => 1,
        }
    }

    /// Whether nobody is left to read the output: `watchkeeper get pods | head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What went wrong with a request.
    pub fn of_request(error: &Error, target: &Target) -> Self {
        match error {
            Error::Transport { kind, .. } => Self::of_transport(*kind, error.to_string(), target),
            Error::Deadline { .. } => Self::unreachable(TransportKind::TimedOut, target),
            error => match error.reason() {
                Some(reason) => Self::of_reason(reason, error.to_string(), target),
                None => Self::Other(error.to_string()),
            },
        }
    }

    /// What went wrong with finding a resource.
    pub fn of_mapping(error: &MappingError, target: &Target) -> Self {
        match error {
            MappingError::Discovery(DiscoveryError::Request(error)) => Self::of_request(error, target),
            MappingError::NoMatch { .. } | MappingError::Ambiguous { .. } => {
                Self::NotFound(error.to_string())
            }
            error => Self::Other(error.to_string()),
        }
    }

    /// What went wrong with an informer.
    pub fn of_sync(error: &SyncError, target: &Target) -> Self {
        match error {
            SyncError::Refused { why: Reason::Api(reason), message } => {
                Self::of_reason(*reason, message.to_string(), target)
            }
            SyncError::Refused { why: Reason::Transport(kind), message } => {
                Self::of_transport(*kind, message.to_string(), target)
            }
            SyncError::NotServed { message } => Self::NotFound(message.to_string()),
            error => Self::Other(error.to_string()),
        }
    }

    fn of_reason(reason: ApiReason, message: String, target: &Target) -> Self {
        let origin = target.origin.clone();
        match reason {
            ApiReason::Unauthorized => Self::Unauthorized { server: target.server.clone(), origin, message },
            ApiReason::Forbidden => Self::Forbidden { origin, message },
            ApiReason::NotFound => Self::NotFound(message),
            _ => Self::Other(message),
        }
    }

    fn of_transport(kind: TransportKind, message: String, target: &Target) -> Self {
        match kind {
            TransportKind::Credentials => Self::Credentials(message),
            kind => Self::unreachable(kind, target),
        }
    }

    fn unreachable(kind: TransportKind, target: &Target) -> Self {
        Self::Unreachable { server: target.server.clone(), origin: target.origin.clone(), kind }
    }
}
