//! The recorder, through which reconcilers record events.

use std::{fmt, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::Resource;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{EventMetrics, EventType, metrics::EventFate, object::Occurrence};
use crate::time::Time;

/// A recorder of Kubernetes events for one controller. Recorders are cheap to clone.
///
/// # Guarantees
///
/// Recording never blocks and never fails: if the queue is full, the event is dropped and counted. Events are written
/// while the [`EventWriter`](super::EventWriter), or the manager that owns it, runs. The [module](super) documents
/// series and limits.
///
/// # Example
///
/// ```
/// use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
/// use kube_core::params::ListParams;
/// use tokio_util::sync::CancellationToken;
/// use watchkeeper_apiserver::ApiServer;
/// use watchkeeper_client::Client;
/// use watchkeeper_controller::{events::EventType, manager::Manager};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::in_process();
/// let client = Client::from(server.client());
/// let manager = Manager::builder(client.clone()).build();
/// let recorder = manager.recorder("shop");
///
/// let config: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "till", "namespace": "default"}}"#)?;
/// recorder.event(&config, EventType::Normal, "Synced", "Sync", "the till is up to date");
///
/// let stop = CancellationToken::new();
/// stop.cancel();
/// manager.run_until(stop).await?; // writes pending events before it returns
/// let events = client.resource::<Event>().default_namespace().list(&ListParams::default()).await?;
/// assert_eq!(events.items[0].reason.as_deref(), Some("Synced"));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "EventRecorder")]
#[derive(Clone)]
pub struct Recorder {
    pub(super) sender: mpsc::Sender<Occurrence>,
    pub(super) controller: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) metrics: EventMetrics,
    pub(super) time: Time,
}

impl Recorder {
    /// Returns a recorder for the controller of this name, with the same queue.
    #[must_use]
    #[doc(alias = "Reporter")]
    pub fn named(&self, controller: &str) -> Self {
        Self { controller: controller.into(), ..self.clone() }
    }

    /// Records an event about `object`. `reason` and `action` are machine-readable words in upper camel case, such as
    /// `Created` and `CreateDeployment`. The note is for people.
    ///
    /// Longer texts are truncated: reason and action to 128 bytes, the note to 1024 bytes.
    #[doc(alias = "Eventf")]
    pub fn event<K>(
        &self,
        object: &K,
        kind: EventType,
        reason: impl Into<String>,
        action: impl Into<String>,
        note: impl Into<String>,
    ) where
        K: Resource,
        K::DynamicType: Default,
    {
        self.event_on(object.object_ref(&K::DynamicType::default()), None, kind, reason, action, note);
    }

    /// Records an event as [`event`](Self::event) does, with a second, `related` object, such as the object that the action
    /// created.
    pub fn event_on(
        &self,
        regarding: ObjectReference,
        related: Option<ObjectReference>,
        kind: EventType,
        reason: impl Into<String>,
        action: impl Into<String>,
        note: impl Into<String>,
    ) {
        let occurrence = Occurrence {
            kind,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
            // The version changes with every write of the object, and would split the series.
            regarding: ObjectReference { resource_version: None, ..regarding },
            related: related.map(|related| ObjectReference { resource_version: None, ..related }),
            controller: self.controller.to_string(),
            instance: format!("{}-{}", self.controller, self.host),
            date: self.time.date(),
        };
        match self.sender.try_send(occurrence) {
            Ok(()) => {}
            Err(TrySendError::Full(event) | TrySendError::Closed(event)) => {
                self.metrics.counter(EventFate::QueueFull).inc();
                tracing::debug!(reason = event.reason, "event dropped: queue full or event writer stopped");
            }
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("controller", &self.controller).finish_non_exhaustive()
    }
}
