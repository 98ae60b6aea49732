//! Errors and exit codes of a manager.

use std::{io, time::Duration};

use super::RunError;
use crate::{http::EndpointError, leader::LeadError, metrics::DuplicateName, rbac::AccessError};

/// The reason that a manager ended early, or did not shut down cleanly.
///
/// # Exit codes
///
/// [`exit_code`](Self::exit_code) maps each error to the exit code of the program:
///
/// | code | meaning |
/// |---|---|
/// | 0 | stopped on request, and everything ended in time |
/// | 1 | a runnable failed or panicked |
/// | 2 | not used here: invalid command line |
/// | 3 | startup failed: a cache cannot sync or did not sync in time, or a name is used twice |
/// | 4 | startup failed: an address could not be bound |
/// | 5 | startup failed: the API server denies declared access |
/// | 6 | the lease was lost; restart the process to compete for it again |
/// | 7 | stopped on request, but a runnable did not end in time |
/// | 130, 143 | terminated immediately by a second SIGINT or SIGTERM |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A runnable returned an error.
    #[error(transparent)]
    Failed(RunError),
    /// A runnable panicked.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// The name of the runnable.
        name: String,
        /// The panic message.
        message: String,
    },
    /// A runnable can never become ready.
    #[error(transparent)]
    Prepare(RunError),
    /// Some runnables did not become ready in time.
    #[error(
        "start manager: not ready within {within:?}: {}; see the log for the caches that have not synced",
        names.join(", ")
    )]
    PrepareTimeout {
        /// The names of the runnables.
        names: Vec<String>,
        /// The timeout that elapsed.
        within: Duration,
    },
    /// The name of a runnable is already in use.
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
    /// An address could not be bound.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The API server denies access that runnables declare.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The lease was lost.
    #[error(transparent)]
    LeaseLost(#[from] LeadError),
    /// Some runnables did not end in time and were dropped.
    #[error(
        "stop manager: still running after {within:?}, dropped: {}; end work when the stop token is cancelled, or raise \
         ManagerOptions::stop_within",
        names.join(", ")
    )]
    StopTimeout {
        /// The names of the runnables.
        names: Vec<String>,
        /// The timeout that elapsed.
        within: Duration,
    },
    /// A second signal arrived during shutdown.
    #[error("terminated immediately by a second {signal}")]
    Interrupted {
        /// The second signal.
        signal: Signal,
    },
    /// The signal handlers could not be installed.
    #[error("install signal handlers: {0}")]
    Signals(#[source] io::Error),
}

/// A signal that requests termination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT, sent by Ctrl-C.
    Interrupt,
    /// SIGTERM, sent to a container before it is killed.
    Terminate,
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

impl ManagerError {
    /// Returns the exit code of the program, as listed in the table of this type.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Panicked { .. } | Self::Signals(_) => 1,
            Self::Prepare(_) | Self::PrepareTimeout { .. } | Self::DuplicateName(_) => 3,
            Self::Endpoint(_) => 4,
            Self::Access(_) => 5,
            Self::LeaseLost(_) => 6,
            Self::StopTimeout { .. } => 7,
            Self::Interrupted { signal: Signal::Interrupt } => 130,
            Self::Interrupted { signal: Signal::Terminate } => 143,
        }
    }
}
