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
/// Controllers ([`ReconcileLoop`](crate::ReconcileLoop)) are runnables. Implement this trait for other components, and
/// add them with [`Manager::add`](crate::manager::Manager::add).
///
/// The manager calls [`prepare`](Self::prepare) on every replica, so that the caches of a standby replica are
/// synced when it becomes the leader. It calls [`run`](Self::run) once: on the leader only if
/// [`needs_leadership`](Self::needs_leadership) returns true, otherwise on every replica.
///
/// ```
/// use futures_util::future::BoxFuture;
/// use tokio_util::sync::CancellationToken;
/// use watchkeeper_controller::manager::{RunError, Runnable};
///
/// /// Logs a message every minute, on every replica.
/// struct Heartbeat;
///
/// impl Runnable for Heartbeat {
///     fn name(&self) -> &str {
///         "heartbeat"
///     }
///
///     fn needs_leadership(&self) -> bool {
///         false
///     }
///
///     fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
///         Box::pin(async move {
///             let mut minutes = tokio::time::interval(std::time::Duration::from_secs(60));
///             while stop.run_until_cancelled(minutes.tick()).await.is_some() {
///                 println!("alive");
///             }
///             Ok(())
///         })
///     }
/// }
/// ```
pub trait Runnable: Send + Sync + 'static {
    /// Returns the name used in logs, metrics, readiness checks and errors. Names are unique within a manager.
    fn name(&self) -> &str;

    /// Returns whether the runnable runs only on the leader. Defaults to true. Has no effect without leader election.
    #[doc(alias = "NeedLeaderElection")]
    #[doc(alias = "LeaderElectionRunnable")]
    fn needs_leadership(&self) -> bool {
        true
    }

    /// Returns the API access that this runnable needs, for the check at the start and for RBAC manifests. Defaults
    /// to none.
    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Registers metric series before the runnable is started.
    ///
    /// [`Manager::add`](crate::manager::Manager::add) calls this once, with the metrics of the manager's
    /// registry. The default implementation registers nothing. A runnable that wraps a controller must call this
    /// method of the controller.
    ///
    /// # Errors
    /// Returns [`DuplicateName`] if another controller of that registry has the same name.
    fn register_metrics(&mut self, metrics: &ControllerMetrics) -> Result<(), DuplicateName> {
        let _ = metrics;
        Ok(())
    }

    /// Prepares for running, such as by syncing caches, and returns when ready. The manager calls this before it
    /// acquires leadership, and cancels `stop` when it shuts down. The default implementation returns immediately.
    ///
    /// # Errors
    /// Returns [`RunError::Prepare`] if the runnable can never become ready. The manager then stops with
    /// [`ManagerError::Prepare`](crate::manager::ManagerError::Prepare).
    #[doc(alias = "EnableWarmup")]
    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        let _ = stop;
        Box::pin(async { Ok(()) })
    }

    /// Runs until `stop` is cancelled, and returns when all of its work has ended.
    ///
    /// A runnable that returns `Ok` earlier has finished, and the others continue. Work that has not ended within
    /// [`ManagerOptions::stop_within`](crate::options::ManagerOptions::stop_within) is dropped.
    ///
    /// # Errors
    /// Returns a [`RunError`] if the runnable fails. The manager then stops all other runnables and returns the error.
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>>;
}
