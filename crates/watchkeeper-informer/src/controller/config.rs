//! Configuration of informers.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tracing::error;
use watchkeeper_client::list_watch::ListerWatcher;

use crate::{
    Object, ObjectKey,
    delta_fifo::FifoOptions,
    memory::{MemoryPolicy, MemoryPool, ObjectMemory, Packer, PackerOptions},
    reflector::{
        Reflector, ReflectorOptions, RelistLimiter, Transform, TransformError, WatchErrorHook, WatchFailure,
    },
};

/// The default number of keys that are applied and published together.
const BATCH_KEYS: usize = 1_024;

/// The configuration of an informer: the sources of its objects, and the processing before the cache.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_client::list_watch::ScriptedSource;
/// use watchkeeper_informer::{controller::Config, reflector::ReflectorOptions};
///
/// let source = ScriptedSource::<Pod>::new(); // in a program: a ListWatch
/// let config = Config::new("pods", source)
///     .resync_period(Duration::from_secs(600))
///     .transform(|mut pod| {
///         pod.metadata.annotations = None; // not needed, so not cached
///         Ok(pod)
///     })
///     .on_watch_error(|failure| eprintln!("{failure}"));
/// # drop(config);
/// ```
#[must_use = "a configuration does nothing until an informer is created from it"]
#[doc(alias = "SharedIndexInformerOptions")]
pub struct Config<K> {
    pub(crate) name: Arc<str>,
    pub(crate) sources: Vec<CollectionSource<K>>,
    pub(crate) reflector: ReflectorOptions,
    pub(crate) fifo: FifoOptions,
    pub(crate) batch_keys: usize,
    pub(crate) resync_period: Duration,
    transform: Option<Transform<K>>,
    hook: Option<WatchErrorHook>,
    limiter: Option<RelistLimiter>,
    /// The budget that the informer shares with others. `None` for one of its own.
    pool: Option<Arc<MemoryPool>>,
    packer: PackerOptions,
}

/// A collection with its namespace, or without one for a source of all objects.
pub(crate) struct CollectionSource<K> {
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) lister_watcher: Arc<dyn ListerWatcher<K>>,
}

impl<K: Object> Config<K> {
    /// Creates a configuration with one source. `name` is used in logs.
    pub fn new(name: impl Into<Arc<str>>, source: impl ListerWatcher<K>) -> Self {
        Self::of(name.into(), vec![CollectionSource { namespace: None, lister_watcher: Arc::new(source) }])
    }

    /// Creates a configuration with several sources, each of which contains all objects of one namespace. The
    /// sources are independent: a source that fails only keeps the informer from being synced.
    ///
    /// Of several sources for the same namespace, the last one is used.
    pub fn by_namespace<S: ListerWatcher<K>>(
        name: impl Into<Arc<str>>,
        sources: impl IntoIterator<Item = (String, S)>,
    ) -> Self {
        let sources: std::collections::BTreeMap<String, S> = sources.into_iter().collect();
        let source = |(namespace, source): (String, S)| CollectionSource {
            namespace: Some(namespace.into()),
            lister_watcher: Arc::new(source),
        };
        Self::of(name.into(), sources.into_iter().map(source).collect())
    }

    fn of(name: Arc<str>, sources: Vec<CollectionSource<K>>) -> Self {
        Self {
            name,
            sources,
            reflector: ReflectorOptions::default(),
            fifo: FifoOptions::default(),
            batch_keys: BATCH_KEYS,
            resync_period: Duration::ZERO,
            transform: None,
            hook: None,
            limiter: None,
            pool: None,
            packer: PackerOptions::default(),
        }
    }

    /// Sets the options of lists and watches. Defaults to [`ReflectorOptions::default`]. Their resync period is
    /// ignored; see [`resync_period`](Self::resync_period).
    pub fn reflector(mut self, options: ReflectorOptions) -> Self {
        self.reflector = options;
        self
    }

    /// Changes the options of lists and watches.
    pub fn reflector_with(mut self, change: impl FnOnce(&mut ReflectorOptions)) -> Self {
        change(&mut self.reflector);
        self
    }

    /// Sets the options of the queue in front of the cache. Defaults to [`FifoOptions::default`].
    pub fn fifo(mut self, options: FifoOptions) -> Self {
        self.fifo = options;
        self
    }

    /// Sets the maximum number of keys that are applied to the cache together. Defaults to 1,024.
    pub fn batch_keys(mut self, keys: usize) -> Self {
        self.batch_keys = keys.max(1);
        self
    }

    /// Sets the default resync period of handlers. Defaults to zero, which disables resyncs for all handlers.
    #[doc(alias = "FullResyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = period;
        self
    }

    /// Sets a function that transforms each object before it is cached, once, when it is received.
    ///
    /// An object for which the function fails or panics is quarantined like one that cannot be decoded. So is
    /// an object whose name or namespace the function changes. The function should also keep uid and
    /// resourceVersion, because the cache detects changes by them.
    #[doc(alias = "SetTransform")]
    #[doc(alias = "TransformFunc")]
    pub fn transform(
        mut self,
        transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static,
    ) -> Self
    where
        K: Clone,
    {
        self.transform = Some(Arc::new(move |object: Arc<K>| {
            let before = ObjectKey::of(&*object);
            // A newly decoded object has one owner, so nothing is cloned.
            let object = transform(Arc::unwrap_or_clone(object))?;
            if ObjectKey::of(&object) != before {
                return Err(TransformError::new("it changed the name or namespace"));
            }
            Ok(Arc::new(object))
        }));
        self
    }

    /// Sets a function that is called with each failure of a list or watch, before the retry. The function
    /// must not block, because nothing is read meanwhile. A panic of the function is logged and otherwise
    /// ignored.
    #[doc(alias = "SetWatchErrorHandler")]
    #[doc(alias = "WatchErrorHandler")]
    #[doc(alias = "DefaultWatchErrorHandler")]
    pub fn on_watch_error(mut self, hook: impl Fn(&WatchFailure) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(move |failure| {
            if catch_unwind(AssertUnwindSafe(|| hook(failure))).is_err() {
                error!(%failure, "watch error hook panicked");
            }
        }));
        self
    }

    /// Limits concurrent lists together with the other informers that share `limiter`.
    pub fn limiter(mut self, limiter: RelistLimiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Sets the form in which objects are kept, with a memory budget of this informer's own. Defaults to the policy and the
    /// budget of the factory, or to [`MemoryPolicy::Auto`] for an informer without a factory.
    ///
    /// Unless the policy is [`MemoryPolicy::Decoded`], the [transform](Self::transform) is called again when an object is
    /// decoded again, so it must return equal objects for equal objects.
    pub fn memory(mut self, policy: MemoryPolicy) -> Self {
        self.pool = Some(MemoryPool::new(policy));
        self
    }

    /// Sets the number of objects on which a dictionary is trained. For tests with few objects.
    #[doc(hidden)]
    pub fn dictionary_samples(mut self, samples: usize) -> Self {
        self.packer.min_samples = samples;
        self
    }

    /// Sets the number of objects that are decoded to find out how much of them their type reads. For tests that count.
    #[doc(hidden)]
    pub fn measured_objects(mut self, objects: u32) -> Self {
        self.packer.measured_objects = objects;
        self
    }

    /// Shares the budget of a factory.
    pub(crate) fn memory_pool(mut self, pool: Arc<MemoryPool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Creates the memory of the informer's objects. `None` if all objects are kept decoded.
    pub(crate) fn object_memory(&mut self) -> Option<Arc<ObjectMemory>> {
        let pool = self.pool.take().unwrap_or_else(|| MemoryPool::new(MemoryPolicy::default()));
        (pool.policy() != MemoryPolicy::Decoded).then(|| ObjectMemory::new(Arc::clone(&self.name), pool))
    }

    /// Creates the last step of the intake of all sources.
    pub(crate) fn packer(&self, memory: Arc<ObjectMemory>) -> Packer<K> {
        Packer::new(memory, self.transform.clone(), self.packer)
    }

    /// Creates the reflector of one source.
    pub(crate) fn reflector_of(&self, source: CollectionSource<K>) -> Reflector<K> {
        let name: Arc<str> = match &source.namespace {
            Some(namespace) => format!("{} in {namespace}", self.name).into(),
            None => Arc::clone(&self.name),
        };
        let mut options = self.reflector.clone();
        options.resync_period = None;
        let mut reflector = Reflector::new(name, source.lister_watcher).options(options);
        if let Some(transform) = &self.transform {
            reflector = reflector.transform_shared(Arc::clone(transform));
        }
        if let Some(hook) = self.hook.clone() {
            reflector = reflector.on_watch_error(move |failure| hook(failure));
        }
        if let Some(limiter) = &self.limiter {
            reflector = reflector.limiter(limiter.clone());
        }
        reflector
    }
}

impl<K> fmt::Debug for Config<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces: Vec<_> = self.sources.iter().map(|source| &source.namespace).collect();
        f.debug_struct("Config")
            .field("name", &self.name)
            .field("namespaces", &namespaces)
            .field("resync_period", &self.resync_period)
            .finish_non_exhaustive()
    }
}
