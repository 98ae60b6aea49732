//! Delivery of informer events to the queue.

use std::sync::Arc;

use watchkeeper_informer::{Object, ObjectKey};
use watchkeeper_workqueue::{AddOptions, Cause, Priority, WorkQueue};

use super::super::{Change, ChangeKind, predicate::Predicate};
use crate::writes::{TriggerEvent, WriteTracker};

/// The destination of the events of one source.
pub(crate) struct Delivery {
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) tracker: Arc<WriteTracker>,
    /// The index of the source's cache among the controller's caches.
    pub(crate) cache: usize,
}

/// The keys that a change enqueues.
pub(crate) enum Role<W> {
    /// The key of the object itself.
    Primary,
    /// The keys that a function returns.
    Mapped(Mapping<W>),
}

pub(crate) type Mapping<W> = Arc<dyn Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync>;

/// The handling of the changes of one source.
pub(crate) struct EventRule<W> {
    pub(crate) role: Role<W>,
    pub(crate) predicate: Option<Arc<dyn Predicate<W>>>,
    /// The kind, for causes.
    pub(crate) kind: Arc<str>,
}

/// An event handler that enqueues keys for the changes of one source.
pub(super) struct EventHandler<W> {
    pub(super) delivery: Delivery,
    pub(super) rule: Arc<EventRule<W>>,
}

impl<W: Object> EventHandler<W> {
    pub(super) fn handle(&self, change: Change<'_, W>) {
        if self.rule.predicate.as_ref().is_some_and(|predicate| !predicate.admits(change)) {
            return;
        }
        match &self.rule.role {
            Role::Primary => {
                // Every cached object has a key.
                if let Ok(key) = change.object().key() {
                    self.enqueue(key, change);
                }
            }
            Role::Mapped(map) => map(change).into_iter().for_each(|key| self.enqueue(key, change)),
        }
    }

    fn enqueue(&self, key: ObjectKey, change: Change<'_, W>) {
        let options = match change.kind() {
            ChangeKind::Initial => AddOptions::new().priority(Priority::LOW).cause(Cause::InitialList),
            ChangeKind::Resynced => AddOptions::new().priority(Priority::LOW).cause(Cause::Resync),
            _ => {
                let tracker = &self.delivery.tracker;
                if tracker.needs_events()
                    && let Some(event) = self.trigger_event(change)
                {
                    tracker.record_event(&key, event);
                }
                let options = AddOptions::new().cause(Cause::Event(self.cause(change)));
                if self.skips_backoff(change) { options.immediately() } else { options }
            }
        };
        self.delivery.queue.add_with(key, options);
    }

    /// Returns a description of the changed object, for the cause.
    fn cause(&self, change: Change<'_, W>) -> Arc<str> {
        match &self.rule.role {
            // The name is already in the key.
            Role::Primary => Arc::clone(&self.rule.kind),
            Role::Mapped(_) => change.object().key().map_or_else(
                |_| Arc::clone(&self.rule.kind),
                |key| format!("{} {key}", self.rule.kind).into(),
            ),
        }
    }

    /// Returns whether the change makes the success of a failed key likely, so that the key skips its
    /// backoff: the object was created or deleted, or its desired state was edited.
    fn skips_backoff(&self, change: Change<'_, W>) -> bool {
        if let Role::Mapped(_) = self.rule.role {
            return false;
        }
        match (change.kind(), change.before(), change.after()) {
            (ChangeKind::Updated, Some(old), Some(new)) => {
                let (old, new) = (old.metadata().generation(), new.metadata().generation());
                old.is_some() && new.is_some() && old != new
            }
            _ => true,
        }
    }

    fn trigger_event(&self, change: Change<'_, W>) -> Option<TriggerEvent> {
        let object = change.object();
        Some(TriggerEvent {
            cache: self.delivery.cache,
            object: object.key().ok()?,
            version: object.resource_version(),
            uid: object.metadata().uid().map(ToOwned::to_owned),
            is_deletion: change.kind() == ChangeKind::Deleted,
        })
    }
}
