//! The trait of everything that a manager starts and stops.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::{ControllerMetrics, DuplicateName},
    rbac::Access,
};

/// The reason that a runnable ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The runnable can never become ready, such as when a watch is forbidden or a kind does not exist.
    #[error("start {name}: {source}")]
    Prepare {
        /// The name of the runnable.
        name: String,
        /// The error that ended it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The runnable failed while running.
    #[error("{name} ended: {source}")]
    Run {
        /// The name of the runnable.
        name: String,
        /// The error that ended it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another controller that reports to the same metrics registry has the same name.
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
}

/// A component that a manager starts and stops: a controller, a server, or a loop of the program.
///
/// [`prepare`](Self::prepare) runs on every replica, so that a standby replica is warm. [`run`](Self::run)
/// runs only where and while the replica may work.
pub trait Runnable: Send + Sync + 'static {
    /// Returns the name used in logs, metrics, readiness checks and errors. Names are unique within a manager.
    fn name(&self) -> &str;

    /// Returns whether this runs only on the leader. Defaults to true.
    #[doc(alias = "NeedLeaderElection")]
    #[doc(alias = "LeaderElectionRunnable")]
    fn needs_leadership(&self) -> bool {
        true
    }

    /// Returns the API access that this runnable needs. Defaults to none.
    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Registers metric series before the runnable is started.
    ///
    /// [`Manager::add`](crate::manager::Manager::add) calls this once, with the metrics of the manager's
    /// registry. The default implementation registers nothing; a runnable that wraps a controller forwards
    /// the call.
    ///
    /// # Errors
    /// Returns [`DuplicateName`] if another controller of that registry has the same name.
    fn register_metrics(&mut self, metrics: &ControllerMetrics) -> Result<(), DuplicateName> {
        let _ = metrics;
        Ok(())
    }

    /// Prepares for running, such as by syncing caches, and returns when ready. Runs before leadership is
    /// acquired.
    #[doc(alias = "EnableWarmup")]
    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        let _ = stop;
        Box::pin(async { Ok(()) })
    }

    /// Runs until `stop` is cancelled, and returns when all of its work has ended.
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>>;
}
