//! A cache with one handler that runs in the task of the controller.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tracing::error;

use super::{
    Config, InformerController,
    apply::{Process, TrackedStore},
};
use crate::{
    CacheReader, Object, Store, StoreError,
    delta_fifo::DeltaBatch,
    handler::EventHandler,
    transition::{Audience, Notification},
};

/// Creates a cache with one handler: the cache to read, and the controller to run.
///
/// The handler is called in the task of the controller, so a slow handler blocks the cache and, by backpressure, the
/// reads from the server. Use a [`SharedIndexInformer`](crate::SharedIndexInformer) for slow or several handlers. A
/// panic of the handler is logged, and the handler is called with the next event.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_core::ObjectMeta;
/// use watchkeeper_client::list_watch::{ScriptedSource, WatchScript};
/// use watchkeeper_informer::{controller::{Config, new_informer}, event::Event};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = ScriptedSource::<ConfigMap>::new(); // in a program: a ListWatch
/// let (name, version) = (Some("settings".to_owned()), Some("6".to_owned()));
/// let metadata = ObjectMeta { name, resource_version: version, ..ObjectMeta::default() };
/// let settings = ConfigMap { metadata, ..ConfigMap::default() };
/// let _server = source.open_watch(WatchScript::new().added(settings).initial_events_end("7"));
///
/// let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
/// let handler = move |event: &Event<ConfigMap>| _ = sender.send(event.clone());
/// let (cache, controller) = new_informer(Config::new("config maps", source), handler);
/// tokio::select! {
///     ended = controller.run(std::future::pending()) => ended?,
///     first = events.recv() => assert!(first.is_some_and(|event| event.is_initial())),
/// }
/// assert!(cache.get("settings").is_some(), "cached before the handler is called");
/// # Ok(())
/// # }
/// ```
#[doc(alias = "NewInformer")]
#[doc(alias = "InformerOptions")]
pub fn new_informer<K: Object>(
    config: Config<K>,
    handler: impl EventHandler<K>,
) -> (CacheReader<K>, InformerController<K>) {
    let store = Store::new();
    let controller = new_indexer_informer(config, handler, &store);
    (CacheReader::new(store), controller)
}

/// Creates a controller that keeps `store` up to date and calls one handler.
///
/// Use this instead of [`new_informer`] if the cache needs indexes: add them to the store, before or after. The
/// controller must be the only writer of the store. Nothing runs until
/// [`InformerController::run`] is polled. The handler is called in the task of the
/// controller, as with [`new_informer`].
#[doc(alias = "NewIndexerInformer")]
pub fn new_indexer_informer<K: Object>(
    config: Config<K>,
    handler: impl EventHandler<K>,
    store: &Store<K>,
) -> InformerController<K> {
    let cache = TrackedStore::new(store.clone(), config.sources.len(), config.reflector.versions);
    let process = Inline { cache, handler, resync_period: config.resync_period };
    InformerController::new(config, store, Arc::new(process))
}

struct Inline<K, H> {
    cache: TrackedStore<K>,
    handler: H,
    resync_period: Duration,
}

impl<K: Object, H: EventHandler<K>> Process<K> for Inline<K, H> {
    fn process(&self, part: usize, batch: &DeltaBatch<K>) -> Result<(), StoreError> {
        let (mut ops, notifications) = self.cache.prepare(batch);
        let committed = loop {
            match self.cache.commit(part, batch, ops) {
                Ok(committed) => break committed?,
                Err(again) => ops = again,
            }
            self.cache.store.complete(&mut ops);
        };
        drop(committed);
        for Notification { event, audience } in notifications {
            // The only handler is resynced whenever a resync is due, and does not receive unchanged objects.
            if audience != Audience::WantsUnchanged
                && catch_unwind(AssertUnwindSafe(|| self.handler.handle(&event))).is_err()
            {
                error!(?event, "handler panicked");
            }
        }
        Ok(())
    }

    fn part_synced(&self, _part: usize) {}

    fn resync_check_period(&self) -> Duration {
        self.resync_period
    }

    fn is_resync_due(&self) -> bool {
        true
    }
}
