//! What the demonstration sees: informers of its own, beside the controller's.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use watchkeeper::{
    k8s_openapi::api::{apps::v1::Deployment, events::v1::Event as ClusterEvent},
    prelude::*,
};

use super::stage::Stage;
use crate::{exit::Failure, sample::Foo, seen::Changes};

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
        let factory = stage.factory(stage.client());
        let (foos, deployments, events) = (factory.informer(), factory.informer(), factory.informer());
        let changes = Changes::default();
        let counted = [changes.count(&foos), changes.count(&deployments), changes.count(&events)];
        counted.into_iter().collect::<Result<(), _>>().map_err(|error| Failure::Other(error.to_string()))?;
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
        let seen = self.changes.until(self.patience, || look(self)).await;
        seen.ok_or_else(|| Failure::NotSeen {
            awaited: awaited.to_owned(),
            seconds: self.patience.as_secs(),
            seen: None,
        })
    }

    pub(super) fn foo(&self, name: &str) -> Option<Arc<Foo>> {
        self.foos.reader().get_in(Some(&self.namespace), name)
    }

    pub(super) fn deployment(&self, name: &str) -> Option<Arc<Deployment>> {
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
