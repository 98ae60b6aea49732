//! What a manager starts and stops.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::access::Access;

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
}

/// Something with a beginning and an end that a manager looks after: a controller, a server, a loop of yours.
///
/// A replica that waits to lead is kept warm: [`prepare`](Self::prepare) runs on every replica, and
/// [`run`](Self::run) only where and while it may.
pub trait Runnable: Send + Sync + 'static {
    /// Its name, in logs, metrics and errors.
    fn name(&self) -> &str;

    /// It runs only on the replica that leads.
    fn needs_leadership(&self) -> bool {
        true
    }

    /// What it does to the API.
    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Does what may be done before leading, such as filling caches, and returns when it is done.
    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        let _ = stop;
        Box::pin(async { Ok(()) })
    }

    /// Works until `stop` is cancelled, and returns when nothing of it runs any more.
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>>;
}
