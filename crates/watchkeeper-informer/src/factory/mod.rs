//! Factories of shared informers.

mod builder;
mod collection;
mod entry;
mod missing_source;
mod scope;
mod settings;
mod stats;
mod weak;

use std::{any::TypeId, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures_util::{TryStreamExt as _, stream::FuturesUnordered};
use kube_core::{ApiResource, DynamicObject, DynamicResourceScope, GroupVersionKind, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tracing::debug;
use watchkeeper_client::{
    Client, decode::ObjectMetadata, dynamic::GroupVersionResource, list_watch::ListWatch,
};

pub use self::{
    builder::FactoryBuilder,
    collection::CollectionScope,
    scope::Scope,
    stats::{FactoryInformerStats, FactoryMemoryStats, FactoryStats},
    weak::WeakInformerFactory,
};
use self::{
    entry::{AnyInformer, Entry, Ownership},
    missing_source::MissingSource,
    settings::{AllSettings, Settings},
};
use crate::{
    Object, SharedIndexInformer,
    controller::Config,
    memory::MemoryPool,
    reflector::{ReflectorOptions, RelistLimiter},
    spawn::Tasks,
    status::SyncError,
    sync::Mutex,
};

/// A factory of shared informers, with one informer for each kind and [`Scope`].
///
/// # Guarantees
///
/// 1. **One watch and one cache** for the same objects. Every request for the same kind and scope returns the
///    same informer.
/// 2. **The factory owns its informers**, as in client-go, until it is [shut down](Self::shutdown), is
///    dropped, or [releases](Self::release) one. A handler or lister works whether or not the caller keeps
///    the informer: `factory.informer::<Pod>().add_handler(handler)?` is enough.
/// 3. **Waits can fail.** [`wait_for_sync`](Self::wait_for_sync) returns an error with the informer that
///    cannot sync, and the reason. This includes informers that were not started. A resource that is not
///    installed fails the wait, and is watched as soon as it is installed.
/// 4. **Concurrent lists are limited**, at the start and when many informers relist.
/// 5. **A shutdown is complete.** When [`shutdown`](Self::shutdown) returns, all tasks of all informers have
///    ended.
///
/// # Lifetime
///
/// A factory is a handle; clones are the same factory. When the last clone is dropped, its informers stop,
/// except those with other handles, which stop with their last handle like a standalone
/// [`SharedIndexInformer`]. Listers, readers, indexes and registrations are not handles. Dropping the factory
/// does not wait for its tasks; prefer `shutdown().await`.
///
/// The factory owns its informers, and these own their handlers. A handler that captures a clone of the
/// factory keeps all of them alive until the shutdown.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_client::list_watch::ScriptedSource;
/// # use watchkeeper_client::list_watch::WatchScript;
/// use watchkeeper_informer::{event::Event, factory::FactoryBuilder};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let source = ScriptedSource::new();
/// # let pod: Pod = serde_json::from_str(r#"{
/// #     "metadata": {"namespace": "shop", "name": "web-0", "resourceVersion": "6"}, "spec": {"nodeName": "node-1", "containers": []}
/// # }"#)?;
/// # let _server = source.open_watch(WatchScript::new().added(pod).initial_events_end("7"));
/// // In a program: SharedInformerFactory::new(Client::try_default().await?)
/// let factory = FactoryBuilder::without_client().source::<Pod>(source).build();
///
/// let pods = factory.informer::<Pod>();
/// let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
/// pods.add_handler(|event: &Event<Pod>| println!("{event:?}"))?;
/// factory.start();
/// factory.wait_for_sync().await?; // fails with the reason if an informer cannot sync
/// let on_node = by_node.get("node-1"); // Vec<Arc<Pod>>
/// # assert_eq!(on_node.len(), 1);
/// # factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "NewSharedInformerFactory")]
#[doc(alias = "DynamicSharedInformerFactory")]
#[doc(alias = "Cache")]
#[doc(alias = "NewDynamicSharedInformerFactory")]
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    client: Option<Client>,
    scope: Scope,
    resync_period: Duration,
    reflector: ReflectorOptions,
    limiter: RelistLimiter,
    /// The memory budget of all informers.
    pool: Arc<MemoryPool>,
    settings: AllSettings,
    tasks: Tasks,
    informers: Mutex<Informers>,
}

#[derive(Default)]
struct Informers {
    by_key: BTreeMap<Key, Entry>,
    is_shut_down: bool,
}

/// The identity of an informer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    object: TypeId,
    resource: GroupVersionResource,
    scope: Scope,
}

/// An informer of a factory that will not sync, or did not sync in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("informer of {informer}: {source}")]
#[non_exhaustive]
pub struct FactorySyncError {
    /// The resource and scope of the informer.
    pub informer: String,
    /// The reason why it did not sync.
    pub source: SyncError,
}

impl SharedInformerFactory {
    /// Creates a factory whose informers cover all namespaces, without selectors.
    pub fn new(client: impl Into<Client>) -> Self {
        Self::builder(client).build()
    }

    /// Returns a builder of a factory with other settings.
    #[doc(alias = "NewSharedInformerFactoryWithOptions")]
    #[doc(alias = "NewFilteredSharedInformerFactory")]
    #[doc(alias = "SharedInformerOption")]
    pub fn builder(client: impl Into<Client>) -> FactoryBuilder {
        FactoryBuilder::new(Some(client.into()))
    }

    fn of(builder: FactoryBuilder) -> Self {
        let FactoryBuilder { client, scope, resync_period, reflector, limiter, memory, spawn, settings } =
            builder;
        let (tasks, informers) = (Tasks::new(spawn), Mutex::default());
        let pool = MemoryPool::new(memory);
        let shared =
            Shared { client, scope, resync_period, reflector, limiter, pool, settings, tasks, informers };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the client of the factory's informers. None if the factory was built without a client.
    pub fn client(&self) -> Option<&Client> {
        self.shared.client.as_ref()
    }

    /// Returns the informer of a type known at compile time, in the factory's scope.
    ///
    /// The first request creates the informer. It starts with the next [`start`](Self::start), even if the
    /// factory was started before. The factory owns the informer, so the result need not be kept.
    #[doc(alias = "InformerFor")]
    #[doc(alias = "Core")]
    #[doc(alias = "GetInformer")]
    #[doc(alias = "PodInformer")]
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::DynamicType: Default,
        K::Scope: CollectionScope<K>,
    {
        self.informer_in(self.shared.scope.clone())
    }

    /// Returns the informer of a type known at compile time, in `scope` instead of the factory's scope. See
    /// [`informer`](Self::informer).
    #[doc(alias = "ByObject")]
    pub fn informer_in<K>(&self, scope: Scope) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::DynamicType: Default,
        K::Scope: CollectionScope<K>,
    {
        let kind = K::DynamicType::default();
        let resource = GroupVersionResource::new(K::group(&kind), K::version(&kind), K::plural(&kind));
        let key = Key { object: TypeId::of::<K>(), resource, scope: K::Scope::narrow(scope) };
        let settings = self.shared.settings.of::<K>(None);
        let collection = |client: &Client, namespace: Option<&str>| {
            ListWatch::new(&K::Scope::collection(client, namespace))
        };
        self.find_or_make(key, &kind, settings, collection)
    }

    /// Returns the informer of a resource known at run time, in the factory's scope. See
    /// [`informer`](Self::informer).
    ///
    /// Objects that were listed have no `apiVersion` and `kind`, because servers omit them in lists; objects
    /// that came with an event have both.
    #[doc(alias = "ForResource")]
    #[doc(alias = "GetInformerForKind")]
    #[doc(alias = "GenericInformer")]
    pub fn for_resource(&self, resource: &GroupVersionResource) -> SharedIndexInformer<DynamicObject> {
        self.for_resource_in(resource, self.shared.scope.clone())
    }

    /// Returns the informer of a resource known at run time, in `scope` instead of the factory's scope. See
    /// [`for_resource`](Self::for_resource). For a cluster-scoped resource, the scope must not name namespaces.
    pub fn for_resource_in(
        &self,
        resource: &GroupVersionResource,
        scope: Scope,
    ) -> SharedIndexInformer<DynamicObject> {
        self.dynamic(resource, scope)
    }

    /// Returns the informer of the metadata of a resource, in `scope`. Nothing else is requested from the server
    /// or kept in the cache. See [`for_resource_in`](Self::for_resource_in).
    #[doc(alias = "metadata_watcher")]
    pub fn metadata_of(
        &self,
        resource: &GroupVersionResource,
        scope: Scope,
    ) -> SharedIndexInformer<ObjectMetadata> {
        self.dynamic(resource, scope)
    }

    /// Starts every informer of the factory that is not running. Call this again after requesting more
    /// informers.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, unless the factory has another [spawner](FactoryBuilder::spawn).
    #[doc(alias = "Start")]
    pub fn start(&self) {
        // A concurrent shutdown waits for the tasks that are started here.
        let _slot = self.shared.tasks.slot();
        for (_, informer, _) in self.owned() {
            informer.start();
        }
    }

    /// Waits until the cache of every informer of the factory contains its initial list. Returns immediately
    /// if the factory has no informers.
    ///
    /// An informer that is requested during the wait is not waited for, nor is one that is
    /// [released](Self::release).
    ///
    /// # Errors
    /// Returns the first informer that cannot sync without a change elsewhere, and why: see [`SyncError`]. An
    /// informer that has not been started yet is [`SyncError::NotStarted`], also if others were started;
    /// client-go does not wait for it. All informers keep running, and the wait can be repeated.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self) -> Result<(), FactorySyncError> {
        self.wait(None).await
    }

    /// Waits for at most `within` until the cache of every informer of the factory contains its initial list. See
    /// [`wait_for_sync`](Self::wait_for_sync).
    ///
    /// # Errors
    /// As `wait_for_sync`, and [`SyncError::Deadline`] after that time, with the status of an informer that has not
    /// synced.
    pub async fn wait_for_sync_within(&self, within: Duration) -> Result<(), FactorySyncError> {
        self.wait(Some(within)).await
    }

    /// Gives up the ownership of an informer. Returns false if the factory does not own the informer.
    ///
    /// The informer then stops when its last handle is dropped, as a standalone informer does; `informer` is one
    /// of these handles. When it stops, its watch ends, its handlers are not called again, and its listers,
    /// readers and indexes keep their last state. Nothing waits for the end of its tasks. To stop it for all
    /// holders and to wait, call [`informer.shutdown().await`](SharedIndexInformer::shutdown).
    ///
    /// A released informer is neither [started](Self::start) nor [waited for](Self::wait_for_sync) by the
    /// factory. While others hold it, a [`shutdown`](Self::shutdown) of the factory stops it, and a new request
    /// for its kind and scope returns it and makes the factory its owner again. After it has stopped, such a
    /// request makes a new informer.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watchkeeper_informer::factory::FactoryBuilder;
    /// # let factory = FactoryBuilder::without_client().build();
    /// let pods = factory.informer::<Pod>();
    /// assert!(factory.release(&pods));
    /// drop(pods); // stops, unless others hold it
    ///
    /// // Without a handle: the request returns the informer that the factory has.
    /// factory.release(&factory.informer::<Pod>());
    /// ```
    #[doc(alias = "RemoveInformer")]
    pub fn release<K: Object>(&self, informer: &SharedIndexInformer<K>) -> bool {
        // Dropped without the lock.
        let ownership = self.shared.informers.lock().release(informer);
        if ownership.is_some() {
            debug!(informer = informer.name(), "informer released by its factory");
        }
        ownership.is_some()
    }

    /// Stops every informer that the factory made, including those that are held elsewhere, and returns when
    /// the last of their tasks has ended. An informer that is requested afterwards is stopped from the
    /// beginning.
    pub async fn shutdown(&self) {
        let informers: Vec<_> = {
            let mut informers = self.shared.informers.lock();
            informers.is_shut_down = true;
            informers.by_key.values().map(|entry| Arc::clone(entry.informer())).collect()
        };
        for informer in informers {
            informer.stop();
        }
        self.shared.tasks.ended().await;
    }

    async fn wait(&self, within: Option<Duration>) -> Result<(), FactorySyncError> {
        let waits: FuturesUnordered<_> = self
            .owned()
            .into_iter()
            .map(|(key, informer, mut released)| async move {
                tokio::select! {
                    biased;
                    // The sender sends nothing, and is dropped when the informer is released.
                    _ = released.changed() => Ok(()),
                    waited = informer.wait_for_sync(within) => {
                        waited.map_err(|source| FactorySyncError { informer: key.to_string(), source })
                    }
                }
            })
            .collect();
        waits.try_collect().await
    }

    /// Returns the informers that the factory owns, and for each a receiver that ends when it is released.
    fn owned(&self) -> Vec<(Key, Arc<dyn AnyInformer>, watch::Receiver<()>)> {
        let informers = self.shared.informers.lock();
        let owned = |(key, entry): (&Key, &Entry)| {
            Some((key.clone(), Arc::clone(entry.informer()), entry.released()?))
        };
        informers.by_key.iter().filter_map(owned).collect()
    }

    fn dynamic<K>(&self, resource: &GroupVersionResource, scope: Scope) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned + Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        // The kind is in the objects, but not in request paths.
        let kind_unknown = GroupVersionKind::gvk(&resource.group, &resource.version, "");
        let kind = ApiResource::from_gvk_with_plural(&kind_unknown, &resource.resource);
        let key = Key { object: TypeId::of::<K>(), resource: resource.clone(), scope };
        let settings = self.shared.settings.of::<K>(Some(resource));
        let collection = |client: &Client, namespace: Option<&str>| {
            let objects = match namespace {
                Some(namespace) => client.resource_with(&kind).namespace(namespace),
                None => client.resource_with(&kind),
            };
            ListWatch::new(&objects)
        };
        self.find_or_make(key, &kind, settings, collection)
    }

    fn find_or_make<K: Object>(
        &self,
        key: Key,
        kind: &K::DynamicType,
        settings: Option<&Settings<K>>,
        collection: impl Fn(&Client, Option<&str>) -> ListWatch<K>,
    ) -> SharedIndexInformer<K> {
        if let Some(informer) = self.find(&key) {
            return informer;
        }
        // Created without the lock, because user settings are applied. If another thread created the informer
        // first, this one is dropped.
        let config = self.config(&key, settings, collection);
        let made = SharedIndexInformer::spawning(config, kind, Some(Arc::new(self.shared.tasks.clone())));
        let mut informers = self.shared.informers.lock();
        if informers.is_shut_down {
            drop(informers);
            made.stop();
            return made;
        }
        if let Some(informer) = informers.find(&key) {
            drop(informers);
            return informer;
        }
        informers.by_key.retain(|_, entry| entry.is_needed());
        let stopped = informers.by_key.insert(key, Entry::owning(made.clone()));
        drop(informers);
        // The last handle to an informer may run user code on drop, so it is dropped without the lock.
        drop(stopped);
        made
    }

    fn find<K: Object>(&self, key: &Key) -> Option<SharedIndexInformer<K>> {
        self.shared.informers.lock().find(key)
    }

    fn config<K: Object>(
        &self,
        key: &Key,
        settings: Option<&Settings<K>>,
        collection: impl Fn(&Client, Option<&str>) -> ListWatch<K>,
    ) -> Config<K> {
        let name = key.to_string();
        let selected = |client: &Client, namespace: Option<&str>| {
            let mut collection = collection(client, namespace);
            if let Some(labels) = key.scope.label_selector() {
                collection = collection.labels(labels);
            }
            if let Some(fields) = key.scope.field_selector() {
                collection = collection.fields(fields);
            }
            collection
        };
        let source = settings.and_then(|settings| settings.source.clone());
        let config = match (source, &self.shared.client, key.scope.each_namespace()) {
            (Some(source), ..) => Config::new(name, source),
            (None, None, _) => Config::new(name, MissingSource { resource: key.resource.to_string() }),
            (None, Some(client), None) => Config::new(name, selected(client, None)),
            (None, Some(client), Some(namespaces)) => Config::by_namespace(
                name,
                namespaces.map(|namespace| (namespace.to_owned(), selected(client, Some(namespace)))),
            ),
        };
        let config = config
            .reflector(self.shared.reflector.clone())
            .resync_period(self.shared.resync_period)
            .limiter(self.shared.limiter.clone())
            .memory_pool(Arc::clone(&self.shared.pool));
        match settings {
            Some(settings) => settings.apply(config),
            None => config,
        }
    }
}

impl Informers {
    fn find<K: Object>(&mut self, key: &Key) -> Option<SharedIndexInformer<K>> {
        self.by_key.get_mut(key)?.request()
    }

    fn release<K: Object>(&mut self, informer: &SharedIndexInformer<K>) -> Option<Ownership> {
        self.by_key.values_mut().find(|entry| entry.is_of(informer))?.release()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.scope)
    }
}

impl Clone for SharedInformerFactory {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers: Vec<String> = self.owned().iter().map(|(key, ..)| key.to_string()).collect();
        f.debug_struct("SharedInformerFactory").field("informers", &informers).finish_non_exhaustive()
    }
}
