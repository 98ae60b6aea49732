//! Tasks that are started, watched and ended together.

use std::{any::Any, collections::BTreeMap, time::Duration};

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::ManagerError;
use crate::{runnable::RunError, time::Time};

/// Tasks with names, which one token asks to end. Dropping it ends them at their next await.
#[derive(Debug)]
pub(super) struct Group {
    tasks: JoinSet<Result<(), ManagerError>>,
    names: BTreeMap<Id, String>,
    pub(super) stop: CancellationToken,
}

/// How long after they were told to go tasks may still be there.
const ABORT_WITHIN: Duration = Duration::from_secs(1);

impl Group {
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

    /// The first failure. Never if there is none: that all have ended is no reason to end.
    pub(super) async fn failed(&mut self) -> ManagerError {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            if let Err(error) = Self::named(&mut self.names, ended) {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Asks all to end and waits until they have, for so long; what is left then is dropped. The second is whether all ended by themselves,
    /// and so nothing of them runs any more: what is dropped ends at its next await, and what it has started when that notices.
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
        tracing::error!(?names, ?within, "did not end in time, and are dropped");
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

    /// What became of a task that did not return.
    pub(super) fn panicked(name: &str, error: JoinError) -> ManagerError {
        let name = name.to_owned();
        match error.try_into_panic() {
            Ok(panic) => ManagerError::Panicked { name, message: message(panic.as_ref()) },
            Err(error) => ManagerError::Failed(RunError::Run { name, source: error.into() }),
        }
    }
}

/// What a panic said, if it said it in words.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
