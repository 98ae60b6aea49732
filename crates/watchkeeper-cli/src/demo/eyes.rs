//! What the demonstration sees: informers of its own, beside the controller's.

use std::time::Duration;

use tokio::sync::watch;
use watchkeeper::{
    informer::Object,
    k8s_openapi::api::{apps::v1::Deployment, events::v1::Event as ClusterEvent},
    prelude::*,
};

use super::stage::Stage;
use crate::{exit::Failure, sample::Foo};

/// Counts changes, so that none is missed between looking and waiting.
pub(super) type Changes = watch::Sender<u64>;

/// Informers of everything the story is about.
#[derive(Debug)]
pub(super) struct Eyes {
    factory: SharedInformerFactory,
    pub(super) foos: SharedIndexInformer<Foo>,
    pub(super) deployments: SharedIndexInformer<Deployment>,
    pub(super) events: SharedIndexInformer<ClusterEvent>,
    changes: Changes,
    patience: Duration,
    namespace: String,
}

impl Eyes {
    /// Opens them.
    pub(super) async fn open(stage: &Stage) -> Result<Self, Failure> {
        let factory = stage.factory(stage.client().kube());
        let (foos, deployments, events) = (factory.informer(), factory.informer(), factory.informer());
        let changes = Changes::new(0);
        count(&foos, &changes)?;
        count(&deployments, &changes)?;
        count(&events, &changes)?;
        factory.start();
        let synced = factory.wait_for_sync_within(stage.patience()).await;
        synced.map_err(|error| Failure::Other(error.to_string()))?;
        let (patience, namespace) = (stage.patience(), stage.namespace().to_owned());
        Ok(Self { factory, foos, deployments, events, changes, patience, namespace })
    }

    /// Waits until there is something to be seen.
    pub(super) async fn until<T>(
        &self,
        awaited: &str,
        look: impl Fn(&Self) -> Option<T>,
    ) -> Result<T, Failure> {
        until(&self.changes, self.patience, awaited, || look(self)).await
    }

    pub(super) fn foo(&self, name: &str) -> Option<std::sync::Arc<Foo>> {
        self.foos.reader().get_in(Some(&self.namespace), name)
    }

    pub(super) fn deployment(&self, name: &str) -> Option<std::sync::Arc<Deployment>> {
        self.deployments.reader().get_in(Some(&self.namespace), name)
    }

    /// The warning about a Foo, if there is one: its reason and its note.
    pub(super) fn warning(&self, foo: &str) -> Option<(String, String)> {
        let is_about = |event: &ClusterEvent| {
            let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
            event.type_.as_deref() == Some("Warning") && regarding == Some(foo)
        };
        let event = self.events.reader().list().into_iter().find(|event| is_about(event))?;
        Some((event.reason.clone().unwrap_or_default(), event.note.clone().unwrap_or_default()))
    }

    /// Looks again whenever something has changed.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) async fn close(&self) {
        self.factory.shutdown().await;
    }
}

/// Counts the changes of one informer.
pub(super) fn changes<K: Object>(informer: &SharedIndexInformer<K>) -> Result<Changes, Failure> {
    let changes = Changes::new(0);
    count(informer, &changes)?;
    Ok(changes)
}

fn count<K: Object>(informer: &SharedIndexInformer<K>, changes: &Changes) -> Result<(), Failure> {
    let counter = changes.clone();
    let handler = move |_: &Event<K>| counter.send_modify(|count| *count += 1);
    informer.add_handler(handler).map(drop).map_err(|error| Failure::Other(error.to_string()))
}

/// Waits until there is something to be seen, for so long at most.
pub(super) async fn until<T>(
    changes: &Changes,
    patience: Duration,
    awaited: &str,
    look: impl Fn() -> Option<T>,
) -> Result<T, Failure> {
    let mut changed = changes.subscribe();
    let seeing = async {
        loop {
            changed.borrow_and_update();
            if let Some(seen) = look() {
                return seen;
            }
            // The sender is borrowed for as long as this waits.
            let _ = changed.changed().await;
        }
    };
    tokio::time::timeout(patience, seeing).await.map_err(|_| Failure::NotSeen {
        awaited: awaited.to_owned(),
        seconds: patience.as_secs(),
        seen: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_in_time_is_named() {
        let changes = Changes::new(0);
        let waited = until(&changes, Duration::from_secs(30), "the moon", || None::<()>).await;
        let failure = waited.unwrap_err();
        assert_eq!(failure.to_string(), "waited 30 s in vain for the moon");
        assert_eq!(failure.exit_code(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_between_looking_and_waiting_is_not_missed() {
        let changes = Changes::new(0);
        let looks = std::cell::Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            // Something happens right after the first look.
            changes.send_modify(|count| *count += 1);
            (looks.get() == 2).then_some(())
        };
        until(&changes, Duration::from_secs(30), "two looks", look).await.unwrap();
        assert_eq!(looks.get(), 2);
    }
}
