//! What a manager starts and stops.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    access::Access,
    metrics::{ControllerMetrics, DuplicateName},
};

/// Why something that was run ended before it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It will never be ready: a watch is forbidden, a kind does not exist.
    #[error("{name} cannot start: {source}")]
    Prepare {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It failed while it ran.
    #[error("{name} ended: {source}")]
    Run {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another controller that reports to the same metrics registry has its name.
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
}

/// Something with a beginning and an end that a manager looks after: a controller, a server, a loop of yours.
///
/// A replica that waits to lead is kept warm: [`prepare`](Self::prepare) runs on every replica, and
/// [`run`](Self::run) only where and while it may.
pub trait Runnable: Send + Sync + 'static {
    /// Returns the name used in logs, metrics, readiness checks and errors. Names are unique within a manager.
    fn name(&self) -> &str;

    /// It runs only on the replica that leads.
    fn needs_leadership(&self) -> bool {
        true
    }

    /// What it does to the API.
    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Registers metric series before the runnable is started. [`Manager::add`](crate::manager::Manager::add) calls this once, with the
    /// metrics of the manager's registry. The default implementation registers nothing; a runnable that wraps a controller forwards
    /// the call.
    ///
    /// # Errors
    /// Returns [`DuplicateName`] if another controller of that registry has the name.
    fn register_metrics(&mut self, metrics: &ControllerMetrics) -> Result<(), DuplicateName> {
        let _ = metrics;
        Ok(())
    }

    /// Does what may be done before leading, such as filling caches, and returns when it is done.
    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        let _ = stop;
        Box::pin(async { Ok(()) })
    }

    /// Works until `stop` is cancelled, and returns when nothing of it runs any more.
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>>;
}
