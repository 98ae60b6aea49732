//! Delivery to handlers that keep up, lag, are added late, and are removed.
//!
//! Time is virtual and advances only while every task waits, so sleeping for a millisecond waits until all
//! tasks are idle.

mod delivery;
mod lag;
mod late;
mod model;
mod panics;
mod removal;
mod resync;

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinSet};
use watchkeeper_informer::{
    Cached,
    delta_fifo::{Delta, DeltaKind},
    event::{Deleted, Event},
    handler::{HandlerOptions, HandlerStatus, Registration},
    internals::{CacheUpdate, Notification, Processor, ProcessorGuard, transition},
};

use crate::fifo_fixture::{self, label};

const DELETED: DeltaKind = DeltaKind::Deleted { final_state_unknown: false };

/// Returns an event as text.
pub(crate) fn describe(event: &Event<ConfigMap>) -> String {
    match event {
        Event::Added { object, is_initial } => {
            format!("added{} {}", if *is_initial { "!" } else { "" }, label(object))
        }
        Event::Updated { old, new } => format!("updated {} {}", label(old), label(new)),
        Event::Synced(object) => format!("synced {}", label(object)),
        Event::Deleted(Deleted { object, final_state_unknown, .. }) => {
            format!("deleted{} {}", if *final_state_unknown { "?" } else { "" }, label(object))
        }
    }
}

/// Returns a reference that counts the holders of an object without being one.
pub(crate) fn watch(object: &Cached<ConfigMap>) -> Weak<ConfigMap> {
    Arc::downgrade(&object.get().expect("decodes"))
}

/// An informer without a server: a cache, and a processor that publishes its changes.
struct Informer {
    processor: Processor<ConfigMap>,
    cache: BTreeMap<String, Cached<ConfigMap>>,
    tasks: JoinSet<()>,
}

impl Informer {
    fn new(resync_period: Duration) -> Self {
        Self { processor: Processor::new(resync_period), cache: BTreeMap::new(), tasks: JoinSet::new() }
    }

    /// Returns an informer that runs its handlers.
    fn running() -> Self {
        let mut informer = Self::new(Duration::ZERO);
        informer.start();
        informer
    }

    fn start(&mut self) {
        let processor = self.processor.clone();
        self.tasks.spawn(async move { processor.run().await });
    }

    /// Applies changes to the cache and publishes what they come to, in one guard.
    fn apply(
        &mut self,
        changes: impl IntoIterator<Item = (DeltaKind, Cached<ConfigMap>)>,
    ) -> Vec<Event<ConfigMap>> {
        let changes = changes.into_iter();
        let deltas =
            changes.map(|(kind, object)| Delta { kind, object, is_initial: false, is_new_epoch: false });
        self.apply_deltas(deltas)
    }

    fn apply_deltas(&mut self, deltas: impl IntoIterator<Item = Delta<ConfigMap>>) -> Vec<Event<ConfigMap>> {
        let mut guard = self.processor.lock();
        let mut notifications: Vec<Notification<ConfigMap>> = Vec::new();
        for delta in deltas {
            let key = delta.object.metadata().name().to_owned();
            match transition(&delta, self.cache.get(&key), &mut notifications) {
                CacheUpdate::Keep => {}
                CacheUpdate::Set(object) => _ = self.cache.insert(key, object),
                CacheUpdate::Remove => _ = self.cache.remove(&key),
            }
        }
        let events = notifications.iter().map(|notification| notification.event.clone()).collect();
        guard.publish(notifications);
        events
    }

    /// Publishes an initial list and marks its end.
    fn first_list(&mut self, objects: &[Cached<ConfigMap>]) {
        self.apply_deltas(objects.iter().map(|object| Delta {
            kind: DeltaKind::Replaced,
            object: object.clone(),
            is_initial: true,
            is_new_epoch: false,
        }));
        self.processor.lock().mark_synced();
    }

    /// Adds a handler together with what the cache holds.
    fn add(&self, options: HandlerOptions) -> Listener {
        let received = Arc::new(Mutex::new(Vec::new()));
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let (record, pass) = (Arc::clone(&received), Arc::clone(&gate));
        let handler = move |event: Event<ConfigMap>| {
            let (record, pass) = (Arc::clone(&record), Arc::clone(&pass));
            async move {
                // The event is recorded now, and the call returns when the gate opens.
                record.lock().push(event);
                if let Ok(permit) = pass.acquire().await {
                    permit.forget();
                }
            }
        };
        let mut guard: ProcessorGuard<'_, ConfigMap> = self.processor.lock();
        let snapshot: Vec<Cached<ConfigMap>> = self.cache.values().cloned().collect();
        let registration = guard.add_async(handler, options, Some(snapshot)).expect("not shut down");
        Listener { received, gate, registration }
    }

    /// Shuts down and waits for every handler to end.
    async fn stop(mut self) {
        self.processor.shutdown();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no task panics");
        }
        assert_eq!(self.processor.listener_count(), 0);
    }
}

/// A handler that records its events.
struct Listener {
    received: Arc<Mutex<Vec<Event<ConfigMap>>>>,
    gate: Arc<Semaphore>,
    registration: Registration<ConfigMap>,
}

impl Listener {
    /// From the next event on it does not return.
    fn block(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Lets the handler return from this many events.
    fn pass(&self, events: usize) {
        self.gate.add_permits(events);
    }

    fn unblock(&self) {
        self.block();
        self.pass(Semaphore::MAX_PERMITS);
    }

    /// Returns the events since the last call.
    fn take(&self) -> Vec<String> {
        self.received.lock().drain(..).map(|event| describe(&event)).collect()
    }

    fn status(&self) -> HandlerStatus {
        self.registration.status().expect("not removed")
    }
}

/// Runs all tasks until they are idle.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
