//! A cache with one handler, which runs in the same task.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tracing::error;

use super::{Cache, Config, Controller, Process};
use crate::{
    CacheReader, Object, Store, StoreError,
    delta_fifo::Popped,
    handler::EventHandler,
    transition::{Audience, Notice},
};

/// A cache with one handler: the cache, to be read, and what keeps it, to be run.
///
/// The handler is called in the controller's task, so that there is none beside it: a slow one holds up the
/// cache, and through it the server. If that will not do, or there may be more than one, use a
/// [`SharedIndexInformer`](crate::SharedIndexInformer). A panic of the handler is logged, and it is told of
/// the next event.
///
/// ```
/// use std::sync::{Arc, Mutex};
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
/// let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
/// let handler = move |event: &Event<ConfigMap>| _ = told.send(event.clone());
/// let (cache, controller) = new_informer(Config::new("config maps", source), handler);
/// tokio::select! {
///     ended = controller.run(std::future::pending()) => ended?,
///     first = heard.recv() => assert!(first.is_some_and(|event| event.is_initial())),
/// }
/// assert!(cache.get("settings").is_some(), "in the cache before anybody is told");
/// # Ok(())
/// # }
/// ```
pub fn new_informer<K: Object>(
    config: Config<K>,
    handler: impl EventHandler<K>,
) -> (CacheReader<K>, Controller<K>) {
    let store = Store::new();
    let controller = new_indexer_informer(config, handler, &store);
    (CacheReader::new(store), controller)
}

/// As [`new_informer`], for a store with indexes. Nobody else may change the store.
pub fn new_indexer_informer<K: Object>(
    config: Config<K>,
    handler: impl EventHandler<K>,
    store: &Store<K>,
) -> Controller<K> {
    let cache = Cache::new(store.clone(), config.sources.len(), config.reflector.versions);
    let process = Inline { cache, handler, resync_period: config.resync_period };
    Controller::new(config, store, Arc::new(process))
}

struct Inline<K, H> {
    cache: Cache<K>,
    handler: H,
    resync_period: Duration,
}

impl<K: Object, H: EventHandler<K>> Process<K> for Inline<K, H> {
    fn process(&self, part: usize, popped: &Popped<K>) -> Result<(), StoreError> {
        let (mut ops, notices) = self.cache.prepare(popped);
        let committed = loop {
            match self.cache.commit(part, popped, ops) {
                Ok(committed) => break committed?,
                Err(again) => ops = again,
            }
            self.cache.store.complete(&mut ops);
        };
        drop(committed);
        for Notice { event, audience } in notices {
            // There is one handler, and everything is resynced for it. It did not ask for what is unchanged.
            if audience != Audience::AskedForUnchanged
                && catch_unwind(AssertUnwindSafe(|| self.handler.handle(&event))).is_err()
            {
                error!(?event, "the handler panicked");
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
