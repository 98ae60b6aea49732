//! Errors and exit codes of a manager.

use std::{io, time::Duration};

use super::RunError;
use crate::{http::EndpointError, leader::LeadError, metrics::DuplicateName, rbac::AccessError};

/// The reason that a manager ended early, or did not shut down cleanly.
///
/// # Exit codes
///
/// [`exit_code`](Self::exit_code) maps each error to an exit code. The program exits with it itself, for example with
/// `ExitCode::from(error.exit_code())` in `main`.
///
/// | code | meaning |
/// |---|---|
/// | 0 | stopped on request, and everything ended in time |
/// | 1 | a runnable failed or panicked |
/// | 2 | invalid command line; returned by the parser of arguments, not by a manager |
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
    /// A runnable failed to prepare, such as when a watch is forbidden or a kind does not exist.
    #[error(transparent)]
    Prepare(RunError),
    /// Some runnables were not ready after
    /// [`ManagerOptions::prepare_within`](crate::options::ManagerOptions::prepare_within).
    #[error(
        "start manager: not ready within {within:?}: {}; see the log for the caches that have not synced",
        names.join(", ")
    )]
    PrepareTimeout {
        /// The names of the runnables that were not ready.
        names: Vec<String>,
        /// The timeout that elapsed.
        within: Duration,
    },
    /// The name of a runnable is already in use.
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
    /// The address of the metrics or health endpoint could not be bound.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The API server denies access that runnables declare, and
    /// [`ManagerOptions::access_check`](crate::options::ManagerOptions::access_check) is
    /// [`Fail`](crate::options::AccessCheck::Fail).
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The lease of leader election was lost, so the work was stopped.
    #[error(transparent)]
    LeaseLost(#[from] LeadError),
    /// Some runnables had not ended after [`ManagerOptions::stop_within`](crate::options::ManagerOptions::stop_within),
    /// and were dropped.
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
    /// A second SIGINT or SIGTERM arrived during shutdown.
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
