//! Why a manager ended.

use std::{io, time::Duration};

use crate::{
    http::EndpointError, leader::LeadError, metrics::DuplicateName, rbac::AccessError, runnable::RunError,
};

/// Why a manager ended before it was asked to, or not as it was asked to.
///
/// # Exit codes
///
/// For a program, [`exit_code`](Self::exit_code):
///
/// | code | meaning |
/// |---|---|
/// | 0 | it was asked to stop, and everything ended in time |
/// | 1 | a runnable failed or panicked |
/// | 2 | not used here: the command line was not understood |
/// | 3 | it could not start: a cache will not fill, or did not in time, or a name is used twice |
/// | 4 | it could not start: an address is taken |
/// | 5 | it could not start: the server does not allow what it declares |
/// | 6 | the lease was lost: start it again, and it applies anew |
/// | 7 | it was asked to stop, and something did not in time |
/// | 130, 143 | a second SIGINT or SIGTERM ended it at once |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A runnable ended with an error.
    #[error(transparent)]
    Failed(RunError),
    /// A runnable panicked.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// Its name.
        name: String,
        /// What the panic said.
        message: String,
    },
    /// A runnable will never be ready.
    #[error(transparent)]
    Prepare(RunError),
    /// Some runnables were not ready in time.
    #[error("not ready within {within:?}: {}; the log says what their caches wait for", names.join(", "))]
    PrepareTimeout {
        /// Their names.
        names: Vec<String>,
        /// How long was waited.
        within: Duration,
    },
    /// The name of a runnable is already in use.
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
    /// An address could not be listened on.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The server does not allow what runnables declare.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The lease was lost.
    #[error(transparent)]
    LeaseLost(#[from] LeadError),
    /// Some runnables did not end in time and were dropped.
    #[error("still running {within:?} after they were asked to stop, and dropped: {}", names.join(", "))]
    StopTimeout {
        /// Their names.
        names: Vec<String>,
        /// How long was waited.
        within: Duration,
    },
    /// A second signal came while it was stopping.
    #[error("ended at once by a second {signal}")]
    Interrupted {
        /// Which.
        signal: Signal,
    },
    /// Signals cannot be listened for.
    #[error("signals cannot be listened for: {0}")]
    Signals(#[source] io::Error),
}

/// A signal that asks a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// What a container is sent before it is killed.
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
    /// The code a program should exit with; the table is above.
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
