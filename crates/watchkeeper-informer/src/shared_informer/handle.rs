//! The informer as its users hold it.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::select_all;
use tokio::sync::watch;
use tracing::debug;
use watchkeeper_client::list_watch::Selection;

use super::{Distributor, InformerStats, StatusWatch};
use crate::{
    CacheReader, Index, IndexError, IndexValues, Lister, Object, ResourceVersion, Snapshot,
    controller::{Config, Controller, PartView},
    freshness::FreshnessError,
    handler::{AsyncEventHandler, EventHandler},
    processor::{ListenerOptions, Registration, Stopped},
    reflector::Quarantined,
    spawn::{Spawn, Spawner, Tasks},
    start::Start,
    status::{Monitor, Status, SyncError},
    sync::Mutex,
};

/// Follows a collection on a server, keeps a cache of it, and tells any number of handlers of every change.
///
/// # What it promises
///
/// 1. **The cache never goes back in time** while the informer runs. Up to
///    [`resource_version`](CacheReader::resource_version) nothing is missing from it; single objects may be
///    newer, for as long as changes are on their way to it.
/// 2. **The cache is changed before handlers are told.** A handler that hears of a state finds it, or a later
///    one, in the cache.
/// 3. **Each handler hears one story of each key**: added, updated any number of times, deleted, and so on,
///    with nothing twice and nothing before it was added. See [`Event`](crate::event::Event). A handler that
///    is added late hears first of everything there is, and then of what happens, with neither a gap nor an
///    overlap.
/// 4. **Handlers are on their own.** Each has a task, its own resync period, its own sync; a slow one delays
///    nobody and costs no more than the live keys, see [`ListenerOptions`]; a panic is caught and counted.
/// 5. **Nothing is lost in silence.** What cannot be decoded is [set aside](Self::quarantined) and reported,
///    and the rest goes on; a server that went back in time is found out.
///    [`wait_for_sync`](Self::wait_for_sync) fails with the reason where waiting is of no use.
/// 6. **What is unchanged is not news.** A list that finds an object as it was tells nobody, except those who
///    [asked](ListenerOptions::unchanged).
/// 7. **It stops with its last handle.** Dropping the last clone stops the watch and the handlers;
///    [`shutdown`](Self::shutdown) waits until the last task has ended. An informer of a
///    [`SharedInformerFactory`](crate::SharedInformerFactory) has one more handle, which the factory holds.
/// 8. **A wait on an informer that was not started is an error**, and does not wait for a start.
///
/// What it does not promise: that a handler hears of every state an object was in, if the connection was lost
/// or the handler lagged; or any order between handlers.
///
/// # Lifetime
///
/// This type is a handle: clones are the same informer, and it runs until the last of them is dropped.
/// [Registrations](Registration), [readers](CacheReader), listers and indexes are not handles: those of a
/// stopped informer keep its last state. An informer that comes from a factory is owned by the factory too,
/// and runs until the factory [releases](crate::SharedInformerFactory::release) it, is shut down or is dropped.
///
/// A handler that needs the cache should capture a reader. A handler that captures a clone of its own informer
/// keeps it alive until a shutdown; capture a [`WeakInformer`] instead.
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
pub struct SharedIndexInformer<K: Object> {
    handle: Arc<Handle<K>>,
}

/// A reference to an informer that does not keep it alive.
pub struct WeakInformer<K: Object> {
    handle: Weak<Handle<K>>,
    inner: Weak<Inner<K>>,
    stop: Arc<watch::Sender<bool>>,
}

/// What is there for as long as somebody holds the informer.
struct Handle<K: Object> {
    inner: Arc<Inner<K>>,
}

/// What is there for as long as the informer or one of its tasks is.
struct Inner<K: Object> {
    name: Arc<str>,
    distributor: Arc<Distributor<K>>,
    parts: Vec<PartView<K>>,
    lister: Lister<K>,
    /// Taken when it starts, or when it stops without having started.
    unstarted: Mutex<Option<Controller<K>>>,
    start: Start,
    stop: Arc<watch::Sender<bool>>,
    tasks: Tasks,
}

/// Making and running.
impl<K: Object> SharedIndexInformer<K> {
    /// Makes an informer of a kind known at compile time. It does nothing until it is [started](Self::start).
    #[must_use = "a standalone informer stops when its last handle is dropped"]
    pub fn new(config: Config<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_kind(config, &K::DynamicType::default())
    }

    /// Makes an informer of a kind known at run time.
    #[must_use = "a standalone informer stops when its last handle is dropped"]
    pub fn for_kind(config: Config<K>, kind: &K::DynamicType) -> Self {
        Self::spawning(config, kind, None)
    }

    /// Makes an informer of a kind known at run time, with tasks that are run by `spawn` instead of the runtime in
    /// which the informer is started.
    #[must_use = "a standalone informer stops when its last handle is dropped"]
    pub fn spawned_by(config: Config<K>, kind: &K::DynamicType, spawn: impl Spawn) -> Self {
        Self::spawning(config, kind, Some(Arc::new(spawn)))
    }

    pub(crate) fn spawning(config: Config<K>, kind: &K::DynamicType, spawn: Option<Arc<dyn Spawn>>) -> Self {
        let name = Arc::clone(&config.name);
        let (parts, versions) = (config.sources.len(), config.reflector.versions);
        let distributor = Arc::new(Distributor::with_order(parts, config.resync_period, versions));
        let store = distributor.store().clone();
        let controller = Controller::new(config, &store, Arc::clone(&distributor) as _);
        let start = Start::pending();
        let parts = controller.views().into_iter().map(|part| part.starting_with(&start)).collect();
        let inner = Inner {
            name,
            parts,
            lister: Lister::for_kind(store, kind),
            distributor,
            unstarted: Mutex::new(Some(controller)),
            start,
            stop: Arc::new(watch::Sender::new(false)),
            tasks: Tasks::new(spawn),
        };
        Self { handle: Arc::new(Handle { inner: Arc::new(inner) }) }
    }

    /// Starts the informer. Does nothing if it was started or stopped before.
    ///
    /// # Panics
    /// Outside a tokio runtime, unless the informer was given another place to run its tasks.
    pub fn start(&self) {
        let inner = self.inner();
        // Before it counts as started, so that a shutdown that finds it started waits for its task.
        let place = inner.tasks.place();
        let spawner = inner.tasks.spawner();
        // Before the controller is taken: of two concurrent calls, the one that finds none must not return to a wait that
        // fails.
        inner.start.complete();
        let controller = inner.unstarted.lock().take();
        if let Some(controller) = controller {
            debug!(informer = &*inner.name, "informer started");
            let ending = StopOnDrop(Arc::clone(inner));
            spawner.spawn_in(place, run(ending, controller, spawner.clone()));
        }
    }

    /// Stops it, for all who hold it, and returns when its last task has ended and no handler will be called
    /// again.
    ///
    /// What handlers have not been told by then, they are not told. A call that is running is waited for, so
    /// this is not to be awaited by one of its own handlers. It can be called at any time, and more than
    /// once; dropped while it waits, the informer stops all the same.
    pub async fn shutdown(&self) {
        self.inner().stop();
        self.inner().tasks.ended().await;
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        *self.inner().stop.borrow()
    }

    /// Returns whether the informer was started, or was stopped before it was started.
    pub fn is_started(&self) -> bool {
        !self.inner().start.is_pending()
    }

    /// The name it has in logs.
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

    /// Has everything end, without waiting for it.
    pub(crate) fn stop(&self) {
        self.inner().stop();
    }

    fn inner(&self) -> &Arc<Inner<K>> {
        &self.handle.inner
    }

    fn distributor(&self) -> &Distributor<K> {
        &self.inner().distributor
    }
}

/// Handlers.
impl<K: Object> SharedIndexInformer<K> {
    /// Adds a handler, at any time. It hears of each object in the cache as an initial addition, and then of
    /// everything that happens. The same handler may be added several times; each time it is another one.
    ///
    /// # Errors
    /// When the informer was stopped.
    pub fn add_handler(&self, handler: impl EventHandler<K>) -> Result<Registration<K>, Stopped> {
        self.add_handler_with(handler, ListenerOptions::default())
    }

    /// As [`add_handler`](Self::add_handler), with its own name, resync period and bounds on how far it may
    /// lag.
    ///
    /// # Errors
    /// When the informer was stopped.
    pub fn add_handler_with(
        &self,
        handler: impl EventHandler<K>,
        options: ListenerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let registration = self.distributor().add_handler(handler, options)?;
        Ok(registration.starting_with(&self.inner().start))
    }

    /// As [`add_handler_with`](Self::add_handler_with), for a handler that may wait.
    ///
    /// # Errors
    /// When the informer was stopped.
    pub fn add_async_handler(
        &self,
        handler: impl AsyncEventHandler<K>,
        options: ListenerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let registration = self.distributor().add_async_handler(handler, options)?;
        Ok(registration.starting_with(&self.inner().start))
    }

    /// Handlers there are, those included whose last call has not returned.
    pub fn handler_count(&self) -> usize {
        self.distributor().handler_count()
    }
}

/// The cache.
impl<K: Object> SharedIndexInformer<K> {
    /// Adds an index, before or after the start; what is in the cache already is in it when this returns. See
    /// [`IndexValues`] for what the function may return. One that fails or panics costs its object the place
    /// in this index and nothing else, see [`Index::health`].
    ///
    /// # Errors
    /// When there is an index of that name.
    pub fn add_index<F, V>(&self, name: impl Into<Arc<str>>, function: F) -> Result<Index<K>, IndexError>
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        self.distributor().add_index(name, function)
    }

    /// The cache.
    pub fn reader(&self) -> CacheReader<K> {
        self.distributor().reader()
    }

    /// The cache, by the name client-go gives a store with indexes.
    pub fn indexer(&self) -> CacheReader<K> {
        self.reader()
    }

    /// The cache, read by name, namespace and label.
    pub fn lister(&self) -> Lister<K> {
        self.inner().lister.clone()
    }

    /// The cache as it is now, and the version it is true for.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.distributor().store().snapshot()
    }

    /// The version up to which nothing is missing from the cache. None before the first list.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.distributor().store().resource_version()
    }
}

/// Waiting.
impl<K: Object> SharedIndexInformer<K> {
    /// Whether everything of the first list is in the cache. Handlers may still be on their way there: see
    /// [`Registration::has_synced`].
    pub fn has_synced(&self) -> bool {
        self.distributor().progress().now().has_synced
    }

    /// Waits until the cache contains the whole initial list. Returns immediately if it ever did.
    ///
    /// The informer keeps trying after an error, and the wait can be repeated.
    ///
    /// # Errors
    /// When waiting cannot help: the informer was not [started](Self::start) or was stopped, the server
    /// rejects the request (no permission, no valid credentials, no such resource), or `within` has passed. See
    /// [`SyncError`].
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        self.inner().wait_for_sync(within).await
    }

    /// Waits until the cache contains everything up to `version`, for example that of a write. Returns
    /// immediately if it does.
    ///
    /// The wait has no time limit; see `tokio::time::timeout`.
    ///
    /// # Errors
    /// When the version has no order, when the server's history is found to have been replaced, or when the
    /// informer was not started or was stopped. See [`FreshnessError`].
    pub async fn wait_until(&self, version: &ResourceVersion) -> Result<(), FreshnessError> {
        if !version.is_ordered() || !self.distributor().has_order() {
            return Err(FreshnessError::Unordered { version: version.clone() });
        }
        self.inner().wait_until(version, || false).await
    }

    /// Waits until the cache contains the object of `key` at `version` or a newer one, and returns the object.
    /// Also returns when the cache contains everything up to `version`: the object was deleted since, or is not
    /// in the collection.
    ///
    /// The wait has no time limit. With a version that has no order, it ends when the object has exactly that
    /// version.
    ///
    /// # Errors
    /// When the server's history is found to have been replaced, or when the informer was not started or was
    /// stopped. See [`FreshnessError`].
    pub async fn wait_for(
        &self,
        key: impl AsRef<str>,
        version: &ResourceVersion,
    ) -> Result<Option<Arc<K>>, FreshnessError> {
        let key = key.as_ref();
        let store = self.distributor().store();
        let is_there = || {
            store
                .get(key)
                .and_then(|object| ResourceVersion::of(&*object))
                .is_some_and(|held| held >= *version)
        };
        self.inner().wait_until(version, is_there).await?;
        Ok(store.get(key))
    }
}

/// How it is doing.
impl<K: Object> SharedIndexInformer<K> {
    /// What it is doing. With several sources, what the one is doing that is worst off.
    pub fn status(&self) -> Status {
        self.status_watch().status()
    }

    /// What it is doing, to be waited on.
    pub fn status_watch(&self) -> StatusWatch {
        StatusWatch::new(self.inner().parts.iter().map(|part| part.monitor.clone()).collect())
    }

    /// How each of its sources is doing: by namespace, if there are several.
    pub fn monitors(&self) -> Vec<(Option<Arc<str>>, Monitor)> {
        self.inner().parts.iter().map(|part| (part.namespace.clone(), part.monitor.clone())).collect()
    }

    /// Returns the [selection](Selection) of each source, by namespace if there are several sources. `None` stands for a source that
    /// does not report its selection.
    pub fn selections(&self) -> Vec<(Option<Arc<str>>, Option<Selection>)> {
        self.inner().parts.iter().map(|part| (part.namespace.clone(), part.selection.clone())).collect()
    }

    /// The objects that exist and could not be taken in, of all sources.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.inner().parts.iter().flat_map(|part| part.monitor.quarantined()).collect()
    }

    /// It in numbers.
    pub fn stats(&self) -> InformerStats {
        let inner = self.inner();
        let snapshot = self.snapshot();
        let sources = inner.parts.iter().map(|part| (part.namespace.clone(), part.monitor.counters()));
        InformerStats {
            objects: snapshot.len(),
            resource_version: snapshot.resource_version().cloned(),
            epoch: snapshot.epoch(),
            queued_keys: inner.parts.iter().map(|part| part.fifo.queued_keys()).sum(),
            queued_changes: inner.parts.iter().map(|part| part.fifo.queued_deltas()).sum(),
            handlers: inner.distributor.handler_count(),
            sources: sources.collect(),
        }
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

    /// Waits as [`SharedIndexInformer::wait_for_sync`] does, without keeping the informer alive.
    pub(crate) async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        match self.inner.upgrade() {
            Some(inner) => inner.wait_for_sync(within).await,
            None => Err(SyncError::Stopped),
        }
    }
}

impl<K: Object> Inner<K> {
    /// Has everything end, without waiting for it.
    fn stop(&self) {
        let is_news = !self.stop.send_replace(true);
        if is_news {
            debug!(informer = &*self.name, "informer stopped");
        }
        // One that was never started is over with this, and is dropped where nothing is locked.
        let unstarted = self.unstarted.lock().take();
        drop(unstarted);
        self.distributor.shutdown();
        self.start.complete();
    }

    async fn wait_until(
        &self,
        version: &ResourceVersion,
        is_enough: impl FnMut() -> bool,
    ) -> Result<(), FreshnessError> {
        if self.start.is_pending() {
            return Err(FreshnessError::NotStarted { version: version.clone() });
        }
        self.distributor.progress().wait_until(version.clone(), is_enough).await
    }

    async fn wait_for_sync(&self, within: Option<Duration>) -> Result<(), SyncError> {
        if self.start.is_pending() {
            return Err(SyncError::NotStarted);
        }
        let settled = async {
            let mut progress = self.distributor.progress().watch();
            let synced = async {
                progress.wait_for(|it| it.has_synced || it.is_stopped).await.is_ok_and(|it| it.has_synced)
            };
            if self.parts.is_empty() {
                return if synced.await { Ok(()) } else { Err(SyncError::Stopped) };
            }
            let refused = select_all(self.parts.iter().map(|part| Box::pin(part.monitor.refusal())));
            tokio::select! {
                // What was synced once stays so, whatever became of it.
                biased;
                is_synced = synced => if is_synced { Ok(()) } else { Err(SyncError::Stopped) },
                (error, ..) = refused => Err(error),
            }
        };
        let Some(after) = within else {
            return settled.await;
        };
        let last = || {
            Box::new(StatusWatch::new(self.parts.iter().map(|part| part.monitor.clone()).collect()).status())
        };
        tokio::time::timeout(after, settled)
            .await
            .unwrap_or_else(|_| Err(SyncError::Deadline { after, last: last() }))
    }
}

/// The informer's task. However it ends, and even if it is never polled, everything ends with it.
async fn run<K: Object>(ending: StopOnDrop<K>, controller: Controller<K>, spawner: Spawner) {
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
        // Why it ended early is logged where it did.
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
