//! What a controller is made of.

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
    reflector::{Reflector, ReflectorOptions, RelistLimiter, Transform, TransformError, WatchFailure},
};

type Hook = Arc<dyn Fn(&WatchFailure) + Send + Sync>;

/// Keys that are applied to the cache, and told to handlers, together.
const BATCH_KEYS: usize = 1_024;

/// Where an informer's objects come from, and what becomes of them before they are in the cache.
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
///         pod.metadata.annotations = None; // never read here, so not kept
///         Ok(pod)
///     })
///     .on_watch_error(|failure| eprintln!("{failure}"));
/// # drop(config);
/// ```
#[must_use = "a configuration does nothing until something is made of it"]
pub struct Config<K> {
    pub(crate) name: Arc<str>,
    pub(crate) sources: Vec<Source<K>>,
    pub(crate) reflector: ReflectorOptions,
    pub(crate) fifo: FifoOptions,
    pub(crate) batch_keys: usize,
    pub(crate) resync_period: Duration,
    transform: Option<Transform<K>>,
    hook: Option<Hook>,
    limiter: Option<RelistLimiter>,
}

/// A collection, and which namespace it is the whole of; none for one that has all there is.
pub(crate) struct Source<K> {
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) lister_watcher: Arc<dyn ListerWatcher<K>>,
}

impl<K: Object> Config<K> {
    /// Objects from one source; `name` is for logs.
    pub fn new(name: impl Into<Arc<str>>, source: impl ListerWatcher<K>) -> Self {
        Self::of(name.into(), vec![Source { namespace: None, lister_watcher: Arc::new(source) }])
    }

    /// Objects from several sources, each of which has one namespace, and all of that. They are followed side
    /// by side: one that fails keeps the others from nothing but being synced together.
    ///
    /// Of two for the same namespace the later counts.
    pub fn by_namespace<S: ListerWatcher<K>>(
        name: impl Into<Arc<str>>,
        sources: impl IntoIterator<Item = (String, S)>,
    ) -> Self {
        let sources: std::collections::BTreeMap<String, S> = sources.into_iter().collect();
        let source = |(namespace, source): (String, S)| Source {
            namespace: Some(namespace.into()),
            lister_watcher: Arc::new(source),
        };
        Self::of(name.into(), sources.into_iter().map(source).collect())
    }

    fn of(name: Arc<str>, sources: Vec<Source<K>>) -> Self {
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
        }
    }

    /// Sets what can be chosen about listing and watching. Its resync period is not used; see
    /// [`resync_period`](Self::resync_period).
    pub fn reflector(mut self, options: ReflectorOptions) -> Self {
        self.reflector = options;
        self
    }

    /// Changes what can be chosen about listing and watching.
    pub fn reflector_with(mut self, change: impl FnOnce(&mut ReflectorOptions)) -> Self {
        change(&mut self.reflector);
        self
    }

    /// Sets what can be chosen about the queue in front of the cache.
    pub fn fifo(mut self, options: FifoOptions) -> Self {
        self.fifo = options;
        self
    }

    /// Sets how many keys are applied to the cache together, at most. 1,024 unless said otherwise.
    pub fn batch_keys(mut self, keys: usize) -> Self {
        self.batch_keys = keys.max(1);
        self
    }

    /// Sets how often handlers are told of everything again, unless they say otherwise. Zero, which it is at
    /// first, is never, for any handler.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = period;
        self
    }

    /// Changes each object before it is in the cache: once, when it is received.
    ///
    /// An object it refuses or panics over is set aside and reported like one that cannot be decoded; so is
    /// one whose name or namespace it changes, because it could not be found again. It should leave uid and
    /// resourceVersion alone too: without them the cache cannot tell what changed.
    pub fn transform(
        mut self,
        transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static,
    ) -> Self
    where
        K: Clone,
    {
        self.transform = Some(Arc::new(move |object: Arc<K>| {
            let before = ObjectKey::of(&*object);
            // An object that was just decoded has one owner, so nothing is cloned.
            let object = transform(Arc::unwrap_or_clone(object))?;
            if ObjectKey::of(&object) != before {
                return Err(TransformError::new("it changed the name or the namespace"));
            }
            Ok(Arc::new(object))
        }));
        self
    }

    /// Is called with each failure of a list or watch, before it is tried again. It must not wait: nothing is
    /// read meanwhile. A panic of it is logged and goes no further.
    pub fn on_watch_error(mut self, hook: impl Fn(&WatchFailure) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(move |failure| {
            if catch_unwind(AssertUnwindSafe(|| hook(failure))).is_err() {
                error!(%failure, "the watch error hook panicked");
            }
        }));
        self
    }

    /// Takes turns with other informers in reading lists.
    pub fn limiter(mut self, limiter: RelistLimiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// A reflector of one of the sources.
    pub(crate) fn reflector_of(&self, source: Source<K>) -> Reflector<K> {
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
