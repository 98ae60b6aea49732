//! What can be chosen about a factory.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::DynamicObject;
use watchkeeper_client::{Client, dynamic::GroupVersionResource, list_watch::ListerWatcher};

use super::{Scope, SharedInformerFactory, settings::AllSettings};
use crate::{
    Object,
    controller::Config,
    reflector::{ReflectorOptions, RelistLimiter, TransformError},
    spawn::Spawn,
};

/// Lists that a factory's informers read at the same time.
const LISTS_AT_ONCE: usize = 8;

/// Makes a [`SharedInformerFactory`].
#[must_use = "a builder does nothing until it is built"]
pub struct FactoryBuilder {
    pub(super) client: Option<Client>,
    pub(super) scope: Scope,
    pub(super) resync_period: Duration,
    pub(super) reflector: ReflectorOptions,
    pub(super) limiter: RelistLimiter,
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
            spawn: None,
            settings: AllSettings::default(),
        }
    }

    /// A factory without a client, for types that all have [a source of their own](Self::source): for tests,
    /// say.
    pub fn without_client() -> Self {
        Self::new(None)
    }

    /// Sets the scope of informers that are asked for without one. All there is, unless said otherwise.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets how often handlers are told of everything again, unless they or their type say otherwise. Never,
    /// unless said otherwise.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = period;
        self
    }

    /// Sets how often the handlers of one type are told of everything again.
    pub fn resync_period_of<K: Object>(self, period: Duration) -> Self {
        self.configure::<K>(move |config| config.resync_period(period))
    }

    /// Changes each object of a type before it is in the cache; see [`Config::transform`].
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

    /// Sets what can be chosen about listing and watching, for every type.
    pub fn reflector(mut self, options: ReflectorOptions) -> Self {
        self.reflector = options;
        self
    }

    /// Sets how many lists are read at the same time, of all informers: at the start, and when a server comes
    /// back. 8 unless said otherwise.
    pub fn lists_at_once(mut self, lists: usize) -> Self {
        self.limiter = RelistLimiter::new(lists);
        self
    }

    /// Runs tasks through this instead of in the runtime that informers are started in.
    pub fn spawn(mut self, spawn: impl Spawn) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Changes the configuration of the informers of a type, of every scope, after everything else. Called
    /// for each of them.
    pub fn configure<K: Object>(
        mut self,
        configure: impl Fn(Config<K>) -> Config<K> + Send + Sync + 'static,
    ) -> Self {
        self.settings.change::<K>(None, |settings| settings.add(configure));
        self
    }

    /// As [`configure`](Self::configure), for a resource known at run time.
    pub fn configure_resource(
        mut self,
        resource: GroupVersionResource,
        configure: impl Fn(Config<DynamicObject>) -> Config<DynamicObject> + Send + Sync + 'static,
    ) -> Self {
        self.settings.change::<DynamicObject>(Some(resource), |settings| settings.add(configure));
        self
    }

    /// Takes the objects of a type from here, whatever the scope, instead of from the client: a script, a
    /// file, another cluster.
    pub fn source<K: Object>(mut self, source: impl ListerWatcher<K>) -> Self {
        self.settings.change::<K>(None, |settings| settings.source = Some(Arc::new(source)));
        self
    }

    /// As [`source`](Self::source), for a resource known at run time.
    pub fn source_of_resource(
        mut self,
        resource: GroupVersionResource,
        source: impl ListerWatcher<DynamicObject>,
    ) -> Self {
        let source = Arc::new(source);
        self.settings.change::<DynamicObject>(Some(resource), |settings| settings.source = Some(source));
        self
    }

    /// The factory.
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
