//! One informer for everybody who wants the same objects.

mod builder;
mod collection;
mod entry;
mod nowhere;
mod scope;
mod settings;

use std::{any::TypeId, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures_util::{TryStreamExt as _, stream::FuturesUnordered};
use kube_core::{ApiResource, DynamicObject, DynamicResourceScope, GroupVersionKind, Resource};
use serde::de::DeserializeOwned;
use watchkeeper_client::{
    Client, decode::ObjectMetadata, dynamic::GroupVersionResource, list_watch::ListWatch,
    rest::ResourceClient,
};

pub use self::{builder::FactoryBuilder, collection::CollectionScope, scope::Scope};
use self::{
    entry::Entry,
    nowhere::Nowhere,
    settings::{AllSettings, Settings},
};
use crate::{
    Object, SharedIndexInformer, WeakInformer,
    controller::Config,
    reflector::{ReflectorOptions, RelistLimiter},
    spawn::Tasks,
    status::SyncError,
    sync::Mutex,
};

/// Hands out informers, one for each kind and [`Scope`], however many ask for it.
///
/// # What it promises
///
/// 1. **One watch and one cache** for the same objects: whoever asks for the same kind and scope gets the
///    same informer.
/// 2. **It keeps none of them alive.** An informer stops when the last of those who hold it lets go, and is
///    made anew when somebody asks for it again.
/// 3. **Waits can fail.** [`wait_for_sync`](Self::wait_for_sync) says which informer will not sync and why,
///    instead of waiting for ever. A resource that is not installed yet fails the wait, and is followed as
///    soon as it is.
/// 4. **Lists take turns**, at the start and whenever many informers want to list again.
/// 5. **A shutdown is complete.** When [`shutdown`](Self::shutdown) returns, no task of any of its informers
///    is left.
///
/// A handle: clones are the same factory.
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
/// factory.wait_for_sync().await?; // fails with the reason when it never will
/// let on_node = by_node.get("node-1"); // Vec<Arc<Pod>>
/// # assert_eq!(on_node.len(), 1);
/// # factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    client: Option<Client>,
    scope: Scope,
    resync_period: Duration,
    reflector: ReflectorOptions,
    limiter: RelistLimiter,
    settings: AllSettings,
    tasks: Tasks,
    informers: Mutex<Informers>,
}

#[derive(Default)]
struct Informers {
    by_key: BTreeMap<Key, Arc<dyn Entry>>,
    is_shut_down: bool,
}

/// What makes two informers the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    object: TypeId,
    resource: GroupVersionResource,
    scope: Scope,
}

/// An informer will not sync, or has not in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("informer of {informer}: {source}")]
#[non_exhaustive]
pub struct FactorySyncError {
    /// Which informer: its resource and scope.
    pub informer: String,
    /// Why.
    pub source: SyncError,
}

impl SharedInformerFactory {
    /// A factory of informers of everything a server has.
    pub fn new(client: impl Into<Client>) -> Self {
        Self::builder(client).build()
    }

    /// A factory with more to choose.
    pub fn builder(client: impl Into<Client>) -> FactoryBuilder {
        FactoryBuilder::new(Some(client.into()))
    }

    fn of(builder: FactoryBuilder) -> Self {
        let FactoryBuilder { client, scope, resync_period, reflector, limiter, spawn, settings } = builder;
        let (tasks, informers) = (Tasks::new(spawn), Mutex::default());
        let shared = Shared { client, scope, resync_period, reflector, limiter, settings, tasks, informers };
        Self { shared: Arc::new(shared) }
    }

    /// The client its informers use; none in a factory that was made without.
    pub fn client(&self) -> Option<&Client> {
        self.shared.client.as_ref()
    }

    /// The informer of a type known at compile time, in the factory's scope.
    ///
    /// One that is not there yet is made, and starts with the next [`start`](Self::start).
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::DynamicType: Default,
        K::Scope: CollectionScope<K>,
    {
        self.informer_in(self.shared.scope.clone())
    }

    /// The informer of a type known at compile time, in a scope of its own.
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

    /// The informer of a resource known at run time, in the factory's scope.
    ///
    /// The objects of lists do not say which kind they are, because servers leave that out; those of events
    /// do.
    pub fn for_resource(&self, resource: &GroupVersionResource) -> SharedIndexInformer<DynamicObject> {
        self.for_resource_in(resource, self.shared.scope.clone())
    }

    /// The informer of a resource known at run time, in a scope of its own. Of a resource whose objects are
    /// in no namespace the scope must not name any.
    pub fn for_resource_in(
        &self,
        resource: &GroupVersionResource,
        scope: Scope,
    ) -> SharedIndexInformer<DynamicObject> {
        self.dynamic(resource, scope)
    }

    /// The informer of the metadata of a resource, which is all that is then sent and kept, in a scope.
    pub fn metadata_of(
        &self,
        resource: &GroupVersionResource,
        scope: Scope,
    ) -> SharedIndexInformer<ObjectMetadata> {
        self.dynamic(resource, scope)
    }

    /// Starts the informers that were asked for and are not running. Call it again after asking for more.
    ///
    /// # Panics
    /// Outside a tokio runtime, unless the factory was told where to run tasks.
    pub fn start(&self) {
        // So that a shutdown meanwhile waits for what is started here.
        let _place = self.shared.tasks.place();
        for (_, informer) in self.informers() {
            informer.start();
        }
    }

    /// Waits until the cache of every informer that was started has its first list.
    ///
    /// # Errors
    /// With the first informer found that will not sync without somebody's help, and why. The others, and it
    /// too, go on; this can be called again.
    pub async fn wait_for_sync(&self) -> Result<(), FactorySyncError> {
        self.wait(None).await
    }

    /// As [`wait_for_sync`](Self::wait_for_sync), for so long at most.
    ///
    /// # Errors
    /// Also when the time is over, with an informer that had not synced by then and how far it had come.
    pub async fn wait_for_sync_within(&self, within: Duration) -> Result<(), FactorySyncError> {
        self.wait(Some(within)).await
    }

    /// Stops every informer, whoever holds it, and returns when the last of their tasks has ended. Informers
    /// that are asked for afterwards have stopped already.
    pub async fn shutdown(&self) {
        self.shared.informers.lock().is_shut_down = true;
        for (_, informer) in self.informers() {
            informer.stop();
        }
        self.shared.tasks.ended().await;
    }

    async fn wait(&self, within: Option<Duration>) -> Result<(), FactorySyncError> {
        let waits: FuturesUnordered<_> = self
            .informers()
            .into_iter()
            .map(|(key, informer)| async move {
                let waited = informer.wait_for_sync(within).await;
                waited.map_err(|source| FactorySyncError { informer: key.to_string(), source })
            })
            .collect();
        waits.try_collect().await
    }

    fn informers(&self) -> Vec<(Key, Arc<dyn Entry>)> {
        let informers = self.shared.informers.lock();
        informers.by_key.iter().map(|(key, entry)| (key.clone(), Arc::clone(entry))).collect()
    }

    fn dynamic<K>(&self, resource: &GroupVersionResource, scope: Scope) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned + Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        // The kind is in the objects, and in no path.
        let kind_unknown = GroupVersionKind::gvk(&resource.group, &resource.version, "");
        let kind = ApiResource::from_gvk_with_plural(&kind_unknown, &resource.resource);
        let key = Key { object: TypeId::of::<K>(), resource: resource.clone(), scope };
        let settings = self.shared.settings.of::<K>(Some(resource));
        let collection = |client: &Client, namespace: Option<&str>| {
            let objects = match namespace {
                Some(namespace) => ResourceClient::namespaced_with(client, namespace, &kind),
                None => ResourceClient::all_with(client, &kind),
            };
            ListWatch::new_with(&objects, &kind)
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
        // Made without the lock, because the user's settings are applied; if somebody else was faster, this
        // one is dropped.
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
        informers.by_key.retain(|_, entry| entry.is_alive());
        informers.by_key.insert(key, Arc::new(made.downgrade()));
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
            (None, None, _) => Config::new(name, Nowhere { resource: key.resource.to_string() }),
            (None, Some(client), None) => Config::new(name, selected(client, None)),
            (None, Some(client), Some(namespaces)) => Config::by_namespace(
                name,
                namespaces.map(|namespace| (namespace.to_owned(), selected(client, Some(namespace)))),
            ),
        };
        let config = config
            .reflector(self.shared.reflector.clone())
            .resync_period(self.shared.resync_period)
            .limiter(self.shared.limiter.clone());
        match settings {
            Some(settings) => settings.apply(config),
            None => config,
        }
    }
}

impl Informers {
    fn find<K: Object>(&self, key: &Key) -> Option<SharedIndexInformer<K>> {
        let informer = self.by_key.get(key)?.as_any().downcast_ref::<WeakInformer<K>>()?;
        // Handed out if it is there, and never let go of here: the last to let go of it runs code of the
        // user's.
        if informer.is_alive() { informer.upgrade() } else { None }
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
        let informers: Vec<String> = self.informers().iter().map(|(key, _)| key.to_string()).collect();
        f.debug_struct("SharedInformerFactory").field("informers", &informers).finish_non_exhaustive()
    }
}
