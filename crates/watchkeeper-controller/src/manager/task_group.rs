//! A group of tasks that are started, monitored and ended together.

use std::{collections::BTreeMap, time::Duration};

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{ManagerError, RunError};
use crate::{panic::panic_message, time::Time};

/// Named tasks that share one cancellation token. Dropping the group aborts them at their next await.
#[derive(Debug)]
pub(super) struct TaskGroup {
    tasks: JoinSet<Result<(), ManagerError>>,
    names: BTreeMap<Id, String>,
    pub(super) stop: CancellationToken,
}

/// The time that aborted tasks have to end.
const ABORT_WITHIN: Duration = Duration::from_secs(1);

impl TaskGroup {
    pub(super) fn new() -> Self {
        Self { tasks: JoinSet::new(), names: BTreeMap::new(), stop: CancellationToken::new() }
    }

    pub(super) fn spawn(
        &mut self,
        name: &str,
        task: impl Future<Output = Result<(), ManagerError>> + Send + 'static,
    ) {
        let task = self.tasks.spawn(task);
        self.names.insert(task.id(), name.to_owned());
    }

    /// Waits for the first failure. Never returns if no task fails: a group whose tasks have all ended
    /// successfully is not a failure.
    pub(super) async fn failed(&mut self) -> ManagerError {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            if let Err(error) = Self::named(&mut self.names, ended) {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Requests that all tasks end and waits up to `within`; tasks that are left then are dropped. The second
    /// value is whether all tasks ended by themselves, so that none of their work is still running. A dropped
    /// task ends at its next await, and tasks that it spawned end later still.
    pub(super) async fn end(&mut self, time: &Time, within: Duration) -> (Result<(), ManagerError>, bool) {
        self.stop.cancel();
        let mut first = Ok(());
        let ending = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                let outcome = Self::named(&mut self.names, ended);
                if first.is_ok() {
                    first = outcome;
                }
            }
        };
        if time.within(within, ending).await.is_some() {
            return (first, true);
        }
        let names: Vec<String> = self.names.values().cloned().collect();
        tracing::error!(?names, ?within, "tasks did not end in time; dropping them");
        self.tasks.abort_all();
        let aborting = async { while self.tasks.join_next().await.is_some() {} };
        time.within(ABORT_WITHIN, aborting).await;
        (first.and(Err(ManagerError::StopTimeout { names, within })), false)
    }

    fn named(
        names: &mut BTreeMap<Id, String>,
        ended: Result<(Id, Result<(), ManagerError>), JoinError>,
    ) -> Result<(), ManagerError> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let name = names.remove(&id).unwrap_or_default();
        match ended {
            Ok((_, result)) => result,
            Err(error) => Err(Self::panicked(&name, error)),
        }
    }

    /// Converts the failure of a task that did not return to an error.
    pub(super) fn panicked(name: &str, error: JoinError) -> ManagerError {
        let name = name.to_owned();
        match error.try_into_panic() {
            Ok(panic) => ManagerError::Panicked { name, message: panic_message(panic.as_ref()).to_owned() },
            Err(error) => ManagerError::Failed(RunError::Run { name, source: error.into() }),
        }
    }
}
