//! Handles of shared informers.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use tokio::sync::watch;
use tracing::debug;

use super::Distributor;
use crate::{
    CacheReader, Index, IndexError, IndexValues, Lister, Object, ResourceVersion, Snapshot,
    controller::{Config, InformerController, PartView},
    handler::{AsyncEventHandler, EventHandler},
    memory::ObjectMemory,
    processor::{HandlerOptions, Registration, Stopped},
    spawn::{Spawn, Spawner, Tasks},
    start::InformerStart,
    sync::Mutex,
};

/// A shared informer: it lists and watches a collection, keeps a cache of it, and calls any number of handlers with
/// every change.
///
/// # Guarantees
///
/// 1. **The cache never goes back in time** while the informer runs. It is complete up to its
///    [`resource_version`](CacheReader::resource_version); single objects may be newer.
/// 2. **The cache is updated before handlers are called.** A handler that is called with an object finds that
///    version or a later one in the cache.
/// 3. **Each handler receives a consistent sequence of events for each key**: an `Added`, any number of
///    `Updated`, a `Deleted`, repeated. See [`Event`](crate::event::Event). A handler that is added late
///    first receives an `Added` for every cached object, then all later events, without a gap or an overlap.
/// 4. **Handlers are independent.** Each has its own task, resync period and sync state. A slow handler
///    delays no other one, and its memory is bounded by the number of live keys; see [`HandlerOptions`].
///    Panics are caught and counted.
/// 5. **No silent loss.** An object that cannot be decoded is [quarantined](Self::quarantined) and reported,
///    and all others are processed. A server whose history was replaced is detected.
///    [`wait_for_sync`](Self::wait_for_sync) fails with the reason when waiting cannot succeed.
/// 6. **Unchanged objects cause no events.** A relist that finds an object unchanged calls only handlers with
///    [`HandlerOptions::unchanged`].
/// 7. **The informer stops with its last handle.** Dropping the last clone stops the watch and the handlers.
///    [`shutdown`](Self::shutdown) also waits until the last task has ended. A
///    [`SharedInformerFactory`](crate::SharedInformerFactory) owns a handle to each of its informers.
/// 8. **A wait on an informer that was not started is an error.** It does not wait for a start.
///
/// An informer does not guarantee that a handler receives every state of an object: states are skipped after
/// a lost connection or when the handler lags. The order between different handlers is unspecified.
///
/// # Lifetime
///
/// This type is a handle: clones are the same informer, which runs until the last of them is dropped.
/// [Registrations](Registration), [readers](CacheReader), listers and indexes are not handles; those of a
/// stopped informer keep its last state. An informer of a factory is also owned by the factory, until the
/// factory [releases](crate::SharedInformerFactory::release) it, is shut down or is dropped.
///
/// A handler that needs the cache should capture a reader. A handler that captures a clone of its own
/// informer keeps it alive until a shutdown; capture a [`WeakInformer`] instead.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_core::ObjectMeta;
/// use watchkeeper_client::list_watch::{ScriptedSource, WatchScript};
/// use watchkeeper_informer::{SharedIndexInformer, controller::Config, event::Event};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let metadata = ObjectMeta { name: Some("settings".into()), resource_version: Some("6".into()), ..ObjectMeta::default() };
/// # let settings = ConfigMap { metadata, ..ConfigMap::default() };
/// let source = ScriptedSource::<ConfigMap>::new(); // in a program: a ListWatch
/// let _server = source.open_watch(WatchScript::new().added(settings).initial_events_end("7"));
///
/// let informer = SharedIndexInformer::new(Config::new("config maps", source));
/// let registration = informer.add_handler(|event: &Event<ConfigMap>| println!("{event:?}"))?;
/// informer.start();
/// informer.wait_for_sync(None).await?;
/// assert!(informer.reader().get("settings").is_some());
/// registration.synced().await?;
/// informer.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SharedInformer")]
#[doc(alias = "NewIndexerInformerWatcher")]
pub struct SharedIndexInformer<K: Object> {
    handle: Arc<Handle<K>>,
}

/// A reference to an informer that does not keep it alive.
pub struct WeakInformer<K: Object> {
    handle: Weak<Handle<K>>,
    pub(super) inner: Weak<Inner<K>>,
    stop: Arc<watch::Sender<bool>>,
}

/// The state that exists as long as a handle to the informer does.
struct Handle<K: Object> {
    inner: Arc<Inner<K>>,
}

/// The state that exists as long as the informer or one of its tasks does.
pub(super) struct Inner<K: Object> {
    name: Arc<str>,
    pub(super) distributor: Arc<Distributor<K>>,
    pub(super) parts: Vec<PartView<K>>,
    lister: Lister<K>,
    /// `None` if all objects are kept decoded.
    pub(super) memory: Option<Arc<ObjectMemory>>,
    /// The controller, until the informer starts or stops.
    unstarted: Mutex<Option<InformerController<K>>>,
    pub(super) start: InformerStart,
    stop: Arc<watch::Sender<bool>>,
    tasks: Tasks,
}

/// Methods that create, start and stop an informer.
impl<K: Object> SharedIndexInformer<K> {
    /// Creates an informer for a kind known at compile time. It does nothing until it is
    /// [started](Self::start).
    #[doc(alias = "NewSharedIndexInformer")]
    #[must_use = "a standalone informer stops when its last handle is dropped"]
    #[doc(alias = "NewSharedInformer")]
    #[doc(alias = "NewSharedIndexInformerWithOptions")]
    pub fn new(config: Config<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_kind(config, &K::DynamicType::default())
    }

    /// Creates an informer for a kind known at run time.
    #[must_use = "a standalone informer stops when its last handle is dropped"]
    pub fn for_kind(config: Config<K>, kind: &K::DynamicType) -> Self {
        Self::spawning(config, kind, None)
    }

    /// Creates an informer for a kind known at run time. Its tasks are spawned by `spawn` instead of the
    /// runtime in which it is started.
    #[must_use = "a standalone informer stops when its last handle is dropped"]
    pub fn spawned_by(config: Config<K>, kind: &K::DynamicType, spawn: impl Spawn) -> Self {
        Self::spawning(config, kind, Some(Arc::new(spawn)))
    }

    pub(crate) fn spawning(config: Config<K>, kind: &K::DynamicType, spawn: Option<Arc<dyn Spawn>>) -> Self {
        let name = Arc::clone(&config.name);
        let (parts, versions) = (config.sources.len(), config.reflector.versions);
        let distributor = Arc::new(Distributor::with_order(parts, config.resync_period, versions));
        let store = distributor.store().clone();
        let controller = InformerController::new(config, &store, Arc::clone(&distributor) as _);
        let memory = controller.memory().cloned();
        let start = InformerStart::pending();
        let parts = controller.views().into_iter().map(|part| part.starting_with(&start)).collect();
        let inner = Inner {
            name,
            parts,
            lister: Lister::for_kind(store, kind),
            memory,
            distributor,
            unstarted: Mutex::new(Some(controller)),
            start,
            stop: Arc::new(watch::Sender::new(false)),
            tasks: Tasks::new(spawn),
        };
        Self { handle: Arc::new(Handle { inner: Arc::new(inner) }) }
    }

    /// Starts the informer. Has no effect if it was started or stopped before.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, unless the informer has another [spawner](Self::spawned_by).
    #[doc(alias = "RunWithContext")]
    pub fn start(&self) {
        let inner = self.inner();
        // Registered first, so that a concurrent shutdown waits for the task.
        let slot = inner.tasks.slot();
        let spawner = inner.tasks.spawner();
        // Completed before the controller is taken: of two concurrent calls, the one that finds no controller
        // must not return before waits succeed.
        inner.start.complete();
        let controller = inner.unstarted.lock().take();
        if let Some(controller) = controller {
            debug!(informer = &*inner.name, "informer started");
            let ending = StopOnDrop(Arc::clone(inner));
            spawner.spawn_in(slot, run(ending, controller, spawner.clone()));
        }
    }

    /// Stops the informer for all holders, and returns when its last task has ended and no handler is
    /// running.
    ///
    /// Pending events are not delivered. Running calls are waited for, so a handler must not await the
    /// shutdown of its own informer. The informer stops even if the future is dropped. A shutdown can be
    /// repeated.
    pub async fn shutdown(&self) {
        self.inner().stop();
        self.inner().tasks.ended().await;
    }

    /// Returns whether the informer was stopped.
    #[doc(alias = "IsStopped")]
    pub fn is_stopped(&self) -> bool {
        *self.inner().stop.borrow()
    }

    /// Returns whether the informer was started, or was stopped before it was started.
    pub fn is_started(&self) -> bool {
        !self.inner().start.is_pending()
    }

    /// Returns the name of the informer in logs.
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    /// Returns a reference to the informer that does not keep it alive.
    pub fn downgrade(&self) -> WeakInformer<K> {
        let inner = self.inner();
        WeakInformer {
            handle: Arc::downgrade(&self.handle),
            inner: Arc::downgrade(inner),
            stop: Arc::clone(&inner.stop),
        }
    }

    /// Stops the informer without waiting for its tasks.
    pub(crate) fn stop(&self) {
        self.inner().stop();
    }

    pub(super) fn inner(&self) -> &Arc<Inner<K>> {
        &self.handle.inner
    }

    pub(super) fn distributor(&self) -> &Distributor<K> {
        &self.inner().distributor
    }
}

/// Methods for handlers.
impl<K: Object> SharedIndexInformer<K> {
    /// Adds a handler. It is first called with an initial [`Added`](crate::event::Event::Added) for every
    /// object in the cache, then with every change. A handler that is added several times is called once for
    /// each registration.
    ///
    /// # Errors
    /// Returns [`Stopped`] if the informer was stopped.
    #[doc(alias = "AddEventHandler")]
    #[doc(alias = "WatchStreamExt")]
    #[doc(alias = "ReflectHandle")]
    #[doc(alias = "distribute")]
    pub fn add_handler(&self, handler: impl EventHandler<K>) -> Result<Registration<K>, Stopped> {
        self.add_handler_with(handler, HandlerOptions::default())
    }

    /// Adds a handler with its own name, resync period and lag limits. See
    /// [`add_handler`](Self::add_handler).
    ///
    /// # Errors
    /// Returns [`Stopped`] if the informer was stopped.
    #[doc(alias = "AddEventHandlerWithOptions")]
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn add_handler_with(
        &self,
        handler: impl EventHandler<K>,
        options: HandlerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let registration = self.distributor().add_handler(handler, options)?;
        Ok(registration.starting_with(&self.inner().start))
    }

    /// Adds an asynchronous handler. See [`add_handler_with`](Self::add_handler_with).
    ///
    /// # Errors
    /// Returns [`Stopped`] if the informer was stopped.
    pub fn add_async_handler(
        &self,
        handler: impl AsyncEventHandler<K>,
        options: HandlerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let registration = self.distributor().add_async_handler(handler, options)?;
        Ok(registration.starting_with(&self.inner().start))
    }

    /// Returns the number of handlers, including removed ones whose last call has not returned.
    pub fn handler_count(&self) -> usize {
        self.distributor().handler_count()
    }
}

/// Methods for the cache.
impl<K: Object> SharedIndexInformer<K> {
    /// Adds an index, before or after the start. Cached objects are indexed before this returns. See
    /// [`IndexValues`] for the return type of the function. An object for which the function fails or panics
    /// is missing from this index only; see [`Index::health`].
    ///
    /// # Errors
    /// Returns [`IndexError::Duplicate`] if the cache already has an index with that name.
    #[doc(alias = "AddIndexers")]
    #[doc(alias = "FieldIndexer")]
    #[doc(alias = "GetFieldIndexer")]
    #[doc(alias = "NodeNameIndexFunc")]
    pub fn add_index<F, V>(&self, name: impl Into<Arc<str>>, function: F) -> Result<Index<K>, IndexError>
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        self.distributor().add_index(name, function)
    }

    /// Returns a reader of the cache.
    #[doc(alias = "GetStore")]
    pub fn reader(&self) -> CacheReader<K> {
        self.distributor().reader()
    }

    /// Returns a reader of the cache, under client-go's name for a store with indexes.
    #[doc(alias = "GetIndexer")]
    pub fn indexer(&self) -> CacheReader<K> {
        self.reader()
    }

    /// Returns a lister of the cache, for reads by name, namespace and label.
    #[doc(alias = "PodLister")]
    pub fn lister(&self) -> Lister<K> {
        self.inner().lister.clone()
    }

    /// Returns a snapshot of the cache, with its resourceVersion.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.distributor().store().snapshot()
    }

    /// Returns the resourceVersion up to which the cache is complete, or `None` before the initial list.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.distributor().store().resource_version()
    }
}

impl<K: Object> WeakInformer<K> {
    /// Returns a handle to the informer, if one exists.
    pub fn upgrade(&self) -> Option<SharedIndexInformer<K>> {
        Some(SharedIndexInformer { handle: self.handle.upgrade()? })
    }

    /// Returns whether a handle to the informer exists and the informer was not stopped.
    pub fn is_alive(&self) -> bool {
        self.handle.strong_count() > 0 && !*self.stop.borrow()
    }

    pub(crate) fn is_of(&self, informer: &SharedIndexInformer<K>) -> bool {
        std::ptr::eq(self.handle.as_ptr(), Arc::as_ptr(&informer.handle))
    }
}

impl<K: Object> Inner<K> {
    /// Stops everything without waiting.
    fn stop(&self) {
        let is_news = !self.stop.send_replace(true);
        if is_news {
            debug!(informer = &*self.name, "informer stopped");
        }
        // A controller that was never started is dropped here, outside of the lock.
        let unstarted = self.unstarted.lock().take();
        drop(unstarted);
        self.distributor.shutdown();
        self.start.complete();
    }
}

/// Runs the task of the informer. Everything stops when the task ends, even if it was never polled.
async fn run<K: Object>(ending: StopOnDrop<K>, controller: InformerController<K>, spawner: Spawner) {
    let inner = &ending.0;
    let mut stop = inner.stop.subscribe();
    let stopped = async move {
        // The sender is in `inner`.
        let _ = stop.wait_for(|is_stopped| *is_stopped).await;
    };
    let start_handlers = async {
        while let Some(task) = inner.distributor.accept().await {
            spawner.spawn(task.run());
        }
    };
    tokio::select! {
        biased;
        () = start_handlers => {}
        // An early end was logged by the controller.
        _ = controller.run(stopped) => {}
    }
}

struct StopOnDrop<K: Object>(Arc<Inner<K>>);

impl<K: Object> Drop for StopOnDrop<K> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<K: Object> Drop for Handle<K> {
    fn drop(&mut self) {
        self.inner.stop();
    }
}

impl<K: Object> Clone for SharedIndexInformer<K> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<K: Object> Clone for WeakInformer<K> {
    fn clone(&self) -> Self {
        Self {
            handle: Weak::clone(&self.handle),
            inner: Weak::clone(&self.inner),
            stop: Arc::clone(&self.stop),
        }
    }
}

impl<K: Object> fmt::Debug for SharedIndexInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedIndexInformer")
            .field("name", &self.name())
            .field("status", &self.status().label())
            .field("handlers", &self.handler_count())
            .finish_non_exhaustive()
    }
}

impl<K: Object> fmt::Debug for WeakInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakInformer").finish_non_exhaustive()
    }
}
