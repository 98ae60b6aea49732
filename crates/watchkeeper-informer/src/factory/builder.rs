//! Configuration of factories.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::DynamicObject;
use watchkeeper_client::{Client, dynamic::GroupVersionResource, list_watch::ListerWatcher};

use super::{Scope, SharedInformerFactory, settings::AllSettings};
use crate::{
    Object,
    controller::Config,
    memory::MemoryPolicy,
    reflector::{ReflectorOptions, RelistLimiter, TransformError},
    spawn::Spawn,
};

/// The default number of concurrent lists.
const LISTS_AT_ONCE: usize = 8;

/// A builder of a [`SharedInformerFactory`].
#[must_use = "a builder does nothing until it is built"]
pub struct FactoryBuilder {
    pub(super) client: Option<Client>,
    pub(super) scope: Scope,
    pub(super) resync_period: Duration,
    pub(super) reflector: ReflectorOptions,
    pub(super) limiter: RelistLimiter,
    pub(super) memory: MemoryPolicy,
    pub(super) spawn: Option<Arc<dyn Spawn>>,
    pub(super) settings: AllSettings,
}

impl FactoryBuilder {
    pub(super) fn new(client: Option<Client>) -> Self {
        Self {
            client,
            scope: Scope::all(),
            resync_period: Duration::ZERO,
            reflector: ReflectorOptions::default(),
            limiter: RelistLimiter::new(LISTS_AT_ONCE),
            memory: MemoryPolicy::default(),
            spawn: None,
            settings: AllSettings::default(),
        }
    }

    /// Creates a builder of a factory without a client, for types that all have [their own
    /// source](Self::source), for example in tests.
    pub fn without_client() -> Self {
        Self::new(None)
    }

    /// Sets the scope of informers that are requested without one. Defaults to all namespaces.
    #[doc(alias = "WithNamespace")]
    #[doc(alias = "WithTweakListOptions")]
    #[doc(alias = "DefaultNamespaces")]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the resync period of handlers that neither set their own nor have a type with one. Defaults to
    /// never.
    #[doc(alias = "SyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = period;
        self
    }

    /// Sets the resync period of the handlers of one type.
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_period_of<K: Object>(self, period: Duration) -> Self {
        self.configure::<K>(move |config| config.resync_period(period))
    }

    /// Sets a function that transforms each object of a type before it is cached; see [`Config::transform`].
    #[doc(alias = "WithTransform")]
    #[doc(alias = "DefaultTransform")]
    pub fn transform<K: Object + Clone>(
        self,
        transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static,
    ) -> Self {
        let transform = Arc::new(transform);
        self.configure::<K>(move |config| {
            let transform = Arc::clone(&transform);
            config.transform(move |object| transform(object))
        })
    }

    /// Sets the options of lists and watches for all types. Defaults to [`ReflectorOptions::default`].
    pub fn reflector(mut self, options: ReflectorOptions) -> Self {
        self.reflector = options;
        self
    }

    /// Sets the maximum number of concurrent lists of all informers, at the start and after an outage.
    /// Defaults to 8.
    pub fn lists_at_once(mut self, lists: usize) -> Self {
        self.limiter = RelistLimiter::new(lists);
        self
    }

    /// Sets the form in which the informers keep objects, with one memory budget for all of them. Defaults to
    /// [`MemoryPolicy::Auto`]. [`Config::memory`] sets another policy, with a budget of its own, for one type.
    pub fn memory(mut self, policy: MemoryPolicy) -> Self {
        self.memory = policy;
        self
    }

    /// Spawns tasks with `spawn` instead of the runtime in which the informers are started.
    pub fn spawn(mut self, spawn: impl Spawn) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Changes the configuration of every informer of a type, after all other settings. Called once for each
    /// informer.
    pub fn configure<K: Object>(
        mut self,
        configure: impl Fn(Config<K>) -> Config<K> + Send + Sync + 'static,
    ) -> Self {
        self.settings.change::<K>(None, |settings| settings.add(configure));
        self
    }

    /// Changes the configuration of every informer of a resource known at run time. See
    /// [`configure`](Self::configure).
    pub fn configure_resource(
        mut self,
        resource: GroupVersionResource,
        configure: impl Fn(Config<DynamicObject>) -> Config<DynamicObject> + Send + Sync + 'static,
    ) -> Self {
        self.settings.change::<DynamicObject>(Some(resource), |settings| settings.add(configure));
        self
    }

    /// Sets the source of the objects of a type for all scopes, instead of the client: a script, a file,
    /// another cluster.
    #[doc(alias = "NewInformerFunc")]
    pub fn source<K: Object>(mut self, source: impl ListerWatcher<K>) -> Self {
        self.settings.change::<K>(None, |settings| settings.source = Some(Arc::new(source)));
        self
    }

    /// Sets the source of the objects of a resource known at run time. See [`source`](Self::source).
    pub fn source_of_resource(
        mut self,
        resource: GroupVersionResource,
        source: impl ListerWatcher<DynamicObject>,
    ) -> Self {
        let source = Arc::new(source);
        self.settings.change::<DynamicObject>(Some(resource), |settings| settings.source = Some(source));
        self
    }

    /// Builds the factory.
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory::of(self)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("client", &self.client)
            .field("scope", &self.scope)
            .field("resync_period", &self.resync_period)
            .finish_non_exhaustive()
    }
}
