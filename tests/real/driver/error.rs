//! The errors of a run.

use std::{io, path::PathBuf, time::Duration};

use crate::objects::Kind;

/// A failure of the harness itself. A follower that is late or wrong is a result, not an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An operation of the operating system failed.
    #[error("{operation}: {source}")]
    System {
        operation: String,
        #[source]
        source: io::Error,
    },
    /// The API server rejected a request of the driver.
    #[error("{operation}: {source}")]
    Api {
        operation: String,
        #[source]
        source: Box<kube_client::Error>,
    },
    /// The kubeconfig of the driver is not usable.
    #[error("read the kubeconfig of the driver: {0}")]
    Config(#[from] watchkeeper::client::config::ConfigError),
    /// The certificates of the API server cannot be created.
    #[error("create the certificates of the API server: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A program ended while it was needed.
    #[error("{program} ended ({status}); its log is {}", log.display())]
    Ended { program: String, status: String, log: PathBuf },
    /// A short-lived program failed.
    #[error("{program} failed ({status}): {output}")]
    Failed { program: String, status: String, output: String },
    /// A condition did not hold in time.
    #[error("{condition}: not within {} s", within.as_secs())]
    Timeout { condition: String, within: Duration },
    /// A follower sent a line that is not part of the protocol.
    #[error("follower {follower}: unexpected reply {line:?}")]
    Protocol { follower: &'static str, line: String },
    /// The server sent a revision that is not a number.
    #[error("revision of the server: {text:?} is not a number")]
    Revision { text: String },
    /// The server does not serve a built-in kind.
    #[error("create a marker: {kind} are not served")]
    NotServed { kind: Kind },
    /// The run was ended by a signal.
    #[error("interrupted")]
    Interrupted,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the name of the failed operation to an error.
pub(crate) trait During<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::System { operation: operation(), source })
    }
}

impl<T> During<T> for kube_client::Result<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Api { operation: operation(), source: Box::new(source) })
    }
}
