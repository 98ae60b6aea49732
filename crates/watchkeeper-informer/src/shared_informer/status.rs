//! The status of several sources as one.

use futures_util::future::select_all;

use crate::status::{Monitor, Status};

/// The status of an informer, to be waited on.
///
/// With several sources it is that of the one that is worst off.
#[derive(Debug, Clone)]
pub struct StatusWatch {
    monitors: Vec<Monitor>,
}

impl StatusWatch {
    pub(super) fn new(monitors: Vec<Monitor>) -> Self {
        Self { monitors }
    }

    /// The status as it is.
    pub fn status(&self) -> Status {
        let worst = self.monitors.iter().map(Monitor::status).max_by_key(rank);
        worst.unwrap_or_else(|| Status::Synced { since: crate::reflector::clock::Clock::instant() })
    }

    /// Returns when the status of a source is another than when this was last called, or than when this was
    /// made or cloned. After [`Status::Stopped`] there is no other, and it returns at once.
    pub async fn changed(&mut self) -> Status {
        if self.monitors.is_empty() {
            std::future::pending::<()>().await;
        }
        let changes = self.monitors.iter_mut().map(|monitor| Box::pin(monitor.changed()));
        drop(select_all(changes).await);
        self.status()
    }
}

/// How bad it is.
fn rank(status: &Status) -> u8 {
    match status {
        Status::Synced { .. } => 0,
        Status::Listing { .. } => 1,
        Status::Connecting => 2,
        Status::Stale { .. } => 3,
        Status::Parked { .. } => 4,
        Status::Failing { .. } => 5,
        Status::Stopped => 6,
    }
}
