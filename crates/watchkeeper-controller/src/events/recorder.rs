//! The half reconcilers hold.

use std::{fmt, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::Resource;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{EventMetrics, EventType, metrics::Fate, object::Occurrence};
use crate::time::Time;

/// Takes events, and never keeps anybody waiting. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    pub(super) sender: mpsc::Sender<Occurrence>,
    pub(super) controller: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) metrics: EventMetrics,
    pub(super) time: Time,
}

impl Recorder {
    /// The same recorder for a controller of another name.
    #[must_use]
    pub fn named(&self, controller: &str) -> Self {
        Self { controller: controller.into(), ..self.clone() }
    }

    /// Records that `action` was taken on `object`, for `reason`; both are words for machines, in upper camel case. The note is for people.
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

    /// As [`event`](Self::event), with a second object the action was about, such as one that was created.
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
            // The version changes with every write of the object, and the event is about all of them.
            regarding: ObjectReference { resource_version: None, ..regarding },
            related: related.map(|related| ObjectReference { resource_version: None, ..related }),
            controller: self.controller.to_string(),
            instance: format!("{}-{}", self.controller, self.host),
            date: self.time.date(),
        };
        match self.sender.try_send(occurrence) {
            Ok(()) => {}
            Err(TrySendError::Full(event) | TrySendError::Closed(event)) => {
                self.metrics.of(Fate::QueueFull).inc();
                tracing::debug!(
                    reason = event.reason,
                    "an event was dropped: the queue is full, or nobody writes events any more"
                );
            }
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("controller", &self.controller).finish_non_exhaustive()
    }
}
