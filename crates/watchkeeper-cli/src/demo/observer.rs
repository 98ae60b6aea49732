//! The informers of the demonstration itself, which are independent of the controller's.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use watchkeeper::{
    k8s_openapi::api::{apps::v1::Deployment, events::v1::Event as ClusterEvent},
    prelude::*,
};

use super::environment::Environment;
use crate::{changes::Changes, exit::Failure, sample::Foo};

/// The informers that confirm each step of the scenario.
#[derive(Debug)]
pub(super) struct Observer {
    factory: SharedInformerFactory,
    pub(super) foos: SharedIndexInformer<Foo>,
    pub(super) deployments: SharedIndexInformer<Deployment>,
    pub(super) events: SharedIndexInformer<ClusterEvent>,
    changes: Changes,
    timeout: Duration,
    namespace: String,
}

impl Observer {
    /// Starts the informers and waits until their caches are synced.
    pub(super) async fn start(environment: &Environment) -> Result<Self, Failure> {
        let factory = environment.factory(environment.client());
        let (foos, deployments, events) = (factory.informer(), factory.informer(), factory.informer());
        let changes = Changes::default();
        let counted = [changes.count(&foos), changes.count(&deployments), changes.count(&events)];
        counted.into_iter().collect::<Result<(), _>>().map_err(|error| Failure::Other(error.to_string()))?;
        factory.start();
        let synced = factory.wait_for_sync_within(environment.timeout()).await;
        synced.map_err(|error| Failure::Other(error.to_string()))?;
        let (timeout, namespace) = (environment.timeout(), environment.namespace().to_owned());
        Ok(Self { factory, foos, deployments, events, changes, timeout, namespace })
    }

    /// Waits until `find` returns a value. `awaited` describes it in the error.
    pub(super) async fn until<T>(
        &self,
        awaited: &str,
        find: impl Fn(&Self) -> Option<T>,
    ) -> Result<T, Failure> {
        let found = self.changes.until(self.timeout, || find(self)).await;
        found.ok_or_else(|| Failure::NotSeen {
            awaited: awaited.to_owned(),
            seconds: self.timeout.as_secs(),
            seen: None,
        })
    }

    /// Returns a Foo of the scenario's namespace.
    pub(super) fn foo(&self, name: &str) -> Option<Arc<Foo>> {
        self.foos.reader().get_in(Some(&self.namespace), name)
    }

    /// Returns a Deployment of the scenario's namespace.
    pub(super) fn deployment(&self, name: &str) -> Option<Arc<Deployment>> {
        self.deployments.reader().get_in(Some(&self.namespace), name)
    }

    /// Returns the reason and the note of a warning event about a Foo.
    pub(super) fn warning(&self, foo: &str) -> Option<(String, String)> {
        let is_about = |event: &ClusterEvent| {
            let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
            event.type_.as_deref() == Some("Warning") && regarding == Some(foo)
        };
        let event = self.events.reader().list().into_iter().find(|event| is_about(event))?;
        Some((event.reason.clone().unwrap_or_default(), event.note.clone().unwrap_or_default()))
    }

    /// Returns a receiver that is notified of each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Stops the informers.
    pub(super) async fn shutdown(&self) {
        self.factory.shutdown().await;
    }
}
