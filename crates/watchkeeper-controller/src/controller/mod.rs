//! The builder of a controller.

mod options;
mod reconcile_loop;
mod worker;

use std::{any::TypeId, fmt, sync::Arc, time::Duration};

use kube_core::ClusterResourceScope;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_informer::{
    Object, ObjectKey, SharedIndexInformer, SharedInformerFactory, Spawn, factory::CollectionScope,
};
use watchkeeper_workqueue::{Clock, RateLimiter};

use self::options::{Options, default_limiter};
pub use self::{
    options::{GaveUp, GiveUpReason},
    reconcile_loop::ReconcileLoop,
};
use crate::{
    Change, HotLoop, HotLoopLimits, Reconciler, Watching,
    access::{Access, Verb},
    manager::Signal,
    mapping,
    memory::FollowedCache,
    metrics::ControllerMetrics,
    predicate::Predicate,
    runnable::{RunError, Runnable as _},
    signals::Signals,
    source::{InformerSource, Role, Source},
    triggers::Triggers,
};

/// A builder of a controller for objects of kind `K`: its event sources, its workers and their settings.
///
/// # Guarantees
///
/// 1. **Every change is followed by a reconcile.** After the last change of an object, or of an object that
///    maps to it, its key is reconciled with that change in the cache, unless a [predicate](crate::predicate)
///    rejects the change. Consecutive changes may share one reconcile.
/// 2. **One worker per key.** A key is never reconciled concurrently.
/// 3. **Failures are isolated by key.** An error, a panic or a timeout is counted, logged and retried with a
///    backoff per key; other keys and the worker are not affected.
/// 4. **Sources are independent.** A watch that fails delays no event of another.
/// 5. **Read your writes.** A reconcile does not begin before the controller's caches show the writes of
///    earlier reconciles of the same key, within a [time limit](Self::freshness_timeout).
/// 6. **New events take precedence.** Initial lists and resyncs are enqueued at low priority, and are never
///    starved.
/// 7. **Bounded shutdown.** After a stop request no reconcile begins, running ones may finish within a [time
///    limit](Self::stop_within), the others are dropped at an `await`, and `run` returns when none is left.
///
/// ```no_run
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use watchkeeper_client::Client;
/// use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Request};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Controller::<ConfigMap>::new(Client::try_default().await?)
///     .owns::<Deployment>()
///     .workers(4)
///     .run(|request: Request<ConfigMap>, ctx: Context| async move {
///         let Some(wanted) = request.object else { return Ok(Action::done()) };
///         // compare with what ctx.lister::<Deployment>()? has, and write by ctx.client()
///         # let _ = (wanted, ctx);
///         Ok::<_, ReconcileError>(Action::done())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a controller does nothing until it is run"]
pub struct Controller<K: Object> {
    factory: SharedInformerFactory,
    /// Whether the controller created the factory, and shuts it down at the end.
    owns_factory: bool,
    primary: Watching<K>,
    /// The sources other than the primary one.
    sources: Vec<Part>,
    uses: Vec<Use>,
    triggers: Vec<Triggers>,
    limiter: Box<dyn RateLimiter<ObjectKey>>,
    options: Options,
}

/// A source of keys, and the same source as a cache for tracking writes.
pub(crate) struct Part {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) cache: Arc<dyn FollowedCache>,
}

/// A declared use of a resource, in the namespaces of the controller.
struct Use {
    group: String,
    resource: String,
    is_cluster_wide: bool,
    verbs: Vec<Verb>,
}

impl<K> Controller<K>
where
    K: Object + DeserializeOwned,
    K::DynamicType: Default,
    K::Scope: CollectionScope<K>,
{
    /// Creates a controller for all objects of kind `K`, with its own informers. The informers stop with the
    /// controller.
    pub fn new(client: impl Into<Client>) -> Self {
        let mut controller = Self::on(&SharedInformerFactory::new(client));
        controller.owns_factory = true;
        controller
    }

    /// Creates a controller for the objects of kind `K` in the factory's scope, with the factory's shared
    /// informers.
    ///
    /// The controller starts the informers. The factory owns them, so they continue after the controller has
    /// ended, until the factory is shut down or [releases](SharedInformerFactory::release) them.
    pub fn on(factory: &SharedInformerFactory) -> Self {
        Self::watching(factory, Watching::new())
    }
}

impl<K: Object> Controller<K> {
    /// Creates a controller whose primary objects are watched with special settings: other namespaces, a
    /// selector, or a kind known at run time.
    pub fn watching(factory: &SharedInformerFactory, primary: Watching<K>) -> Self {
        let client = factory.client().cloned();
        let name = primary.kind().to_lowercase();
        Self {
            factory: factory.clone(),
            owns_factory: false,
            primary,
            sources: Vec::new(),
            uses: Vec::new(),
            triggers: Vec::new(),
            limiter: default_limiter(),
            options: Options::new(name, client),
        }
    }

    /// Sets the name used in logs, metrics and readiness checks. Defaults to the kind in lower case.
    ///
    /// Names are unique within a manager and within a metrics registry. A second controller of the same name is rejected with
    /// [`DuplicateName`](crate::metrics::DuplicateName): by [`Manager::add`](crate::manager::Manager::add), or when it is run.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Sets the client of reconcilers. Defaults to the factory's client.
    pub fn client(mut self, client: impl Into<Client>) -> Self {
        self.options.client = Some(client.into());
        self
    }

    /// Adds a value that reconcilers read with [`Context::get`](crate::Context::get). One value is kept per
    /// type.
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.options.values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }
}

/// Sources of keys.
impl<K: Object> Controller<K> {
    /// Ignores changes of primary objects that `predicate` rejects. With several predicates, all must accept
    /// a change.
    #[doc(alias = "WithEventFilter")]
    pub fn filter(mut self, predicate: impl Predicate<K>) -> Self {
        self.primary = self.primary.filter(predicate);
        self
    }

    /// Allows the controller to start while its primary kind does not exist or may not be watched. See
    /// [`Watching::optional`].
    pub fn optional(mut self) -> Self {
        self.primary = self.primary.optional();
        self
    }

    /// Enqueues every primary object in this interval, at low priority and without applying filters. Defaults
    /// to never. Resyncs of the factory are separate, and are filtered.
    #[doc(alias = "SyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.options.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Watches objects of kind `W` that objects of kind `K` control, and enqueues the controlling object: the
    /// owner of this group and kind whose reference has `controller: true`. If the controller of an object
    /// changes, both owners are enqueued.
    #[doc(alias = "EnqueueRequestForOwner")]
    pub fn owns<W>(self) -> Self
    where
        K::DynamicType: Default,
        K::Scope: 'static,
        W: Object + DeserializeOwned,
        W::DynamicType: Default,
        W::Scope: CollectionScope<W>,
    {
        self.owns_with(Watching::<W>::new())
    }

    /// Watches owned objects as [`owns`](Self::owns) does, with settings for the watch.
    pub fn owns_with<W: Object>(self, watching: Watching<W>) -> Self
    where
        K::DynamicType: Default,
        K::Scope: 'static,
    {
        self.watches_with(watching, mapping::to_controller::<K, W>())
    }

    /// Watches objects of kind `W`, and enqueues the keys that `map` returns for each change. The function
    /// receives the old and the new state; [`each_state`](crate::each_state) converts a function of one
    /// object.
    ///
    /// The function is called for every change and must not block. If it panics, no key is enqueued.
    #[doc(alias = "EnqueueRequestsFromMapFunc")]
    pub fn watches<W, F>(self, map: F) -> Self
    where
        W: Object + DeserializeOwned,
        W::DynamicType: Default,
        W::Scope: CollectionScope<W>,
        F: Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.watches_with(Watching::new(), map)
    }

    /// Watches objects as [`watches`](Self::watches) does, using an existing informer.
    pub fn watches_informer<W: Object>(
        self,
        informer: &SharedIndexInformer<W>,
        map: impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        W::DynamicType: Default,
    {
        self.watches_with(Watching::informer(informer), map)
    }

    /// Watches objects as [`watches`](Self::watches) does, with settings for the watch.
    pub fn watches_with<W: Object>(
        mut self,
        watching: Watching<W>,
        map: impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let source = watching.into_source(&self.factory, Role::Mapped(Arc::new(map)));
        self.sources.push(Part::of(Arc::new(source)));
        self
    }

    /// Enqueues keys that are sent from outside through `triggers`.
    #[doc(alias = "WatchesRawSource")]
    pub fn channel(mut self, triggers: &Triggers) -> Self {
        self.triggers.push(triggers.clone());
        self
    }
}

/// Processing of keys.
impl<K: Object> Controller<K> {
    /// Sets the number of keys that are reconciled concurrently. Defaults to 1; 0 counts as 1.
    #[doc(alias = "MaxConcurrentReconciles")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// Sets the timeout of a reconcile. On timeout the reconcile is dropped at its next `await`, and counts
    /// as a failure. Defaults to no timeout.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the number of retries of a failing key, after which the key is dropped until something changes.
    /// With 5 retries, a key is attempted six times. Defaults to no limit.
    pub fn retry_limit(mut self, retries: u32) -> Self {
        self.options.retry_limit = Some(retries);
        self
    }

    /// Calls `hook` when a key is given up, because its retries are exhausted or its error is terminal.
    pub fn on_give_up(mut self, hook: impl Fn(&GaveUp<'_>) + Send + Sync + 'static) -> Self {
        self.options.on_give_up = Some(Arc::new(hook));
        self
    }

    /// Sets the rate limiter of failed keys. Defaults to an exponential backoff per key, from 5 ms to 1000 s.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Sets the time that running reconciles have to finish after a stop request; the others are dropped.
    /// Defaults to 30 s.
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.options.stop_within = time;
        self
    }

    /// Sets the longest time that a key waits until the controller's caches show the last writes for it. Defaults to 5 s. After
    /// that time the reconcile begins with [`Freshness::TimedOut`](crate::Freshness::TimedOut), and the informer and the object
    /// are logged as a warning.
    ///
    /// Only the key waits; its worker processes other keys.
    ///
    /// # Objects that an informer does not select
    ///
    /// A write is not waited for when the namespaces or the label selector of the informer, or a field selector on `metadata.name`
    /// or `metadata.namespace`, exclude the object. A write that removes an object from the selection is waited for until the
    /// cache no longer has the object.
    ///
    /// Other field selectors, and sources that do not report their
    /// [selection](watchkeeper_client::list_watch::ListerWatcher::selection), leave it undecided. If the cache does not have the
    /// object after the timeout, the object is remembered and its writes are not waited for until the cache has the object. To
    /// avoid that first wait, write such objects through [`Context::untracked_client`](crate::Context::untracked_client).
    pub fn freshness_timeout(mut self, timeout: Duration) -> Self {
        self.options.freshness_timeout = Some(timeout);
        self
    }

    /// Disables the wait for own writes: reconciles begin even if the caches do not show earlier writes.
    pub fn without_freshness(mut self) -> Self {
        self.options.freshness_timeout = None;
        self
    }

    /// Sets the limits above which a key that triggers itself is reported.
    pub fn hot_loops(mut self, limits: HotLoopLimits) -> Self {
        self.options.hot_loops = Some(limits);
        self
    }

    /// Disables the detection of keys that trigger themselves.
    pub fn without_hot_loops(mut self) -> Self {
        self.options.hot_loops = None;
        self
    }

    /// Calls `hook` for each key that triggers itself, in addition to the log and the metric.
    pub fn on_hot_loop(mut self, hook: impl Fn(&HotLoop) + Send + Sync + 'static) -> Self {
        self.options.on_hot_loop = Some(Arc::new(hook));
        self
    }

    /// Sets the metrics that the controller reports to. A controller that is added to a manager needs this
    /// only to report to a registry other than the manager's: [`Manager::add`](crate::manager::Manager::add)
    /// registers the metrics of every controller.
    ///
    /// The series are created by [`reconcile_with`](Self::reconcile_with) and removed when the controller is
    /// dropped. If another controller of the registry has the same name, the controller does not start and
    /// reports [`DuplicateName`](crate::metrics::DuplicateName).
    pub fn metrics(mut self, metrics: &ControllerMetrics) -> Self {
        self.options.metrics = Some(metrics.clone());
        self
    }

    /// Sets the clock. Defaults to tokio's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// Sets the spawner of worker tasks. Defaults to the current tokio runtime.
    pub fn spawn(mut self, spawn: impl Spawn) -> Self {
        self.options.spawn = Some(Arc::new(spawn));
        self
    }

    /// Runs the controller on every replica instead of only on the leader.
    #[doc(alias = "NeedLeaderElection")]
    pub fn on_every_replica(mut self) -> Self {
        self.options.needs_leadership = false;
        self
    }
}

/// Declared API access.
impl<K: Object> Controller<K> {
    /// Declares the verbs that reconciles use on objects of kind `W`, in addition to watching them, in the
    /// namespaces of the controller.
    pub fn uses<W: Object>(self, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>("", verbs)
    }

    /// Declares verbs as [`uses`](Self::uses) does, for the `status` subresource.
    pub fn uses_status<W: Object>(self, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>("/status", verbs)
    }

    /// Declares verbs as [`uses`](Self::uses) does, for another subresource.
    pub fn uses_subresource<W: Object>(self, subresource: &str, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>(&format!("/{subresource}"), verbs)
    }

    fn uses_path<W: Object>(mut self, subresource: &str, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        let kind = W::DynamicType::default();
        self.uses.push(Use {
            group: W::group(&kind).into_owned(),
            resource: format!("{}{subresource}", W::plural(&kind)),
            is_cluster_wide: TypeId::of::<W::Scope>() == TypeId::of::<ClusterResourceScope>(),
            verbs: verbs.to_vec(),
        });
        self
    }
}

/// Building and running.
impl<K: Object> Controller<K> {
    /// Returns the controller with its reconciler, to be run by a manager or by the caller.
    pub fn reconcile_with<R: Reconciler<K>>(self, reconciler: R) -> ReconcileLoop<K, R> {
        let primary = Arc::new(self.primary.into_source(&self.factory, Role::Primary));
        let access = access_of(&primary, &self.sources, self.uses);
        let parts = [Part::of(Arc::clone(&primary))].into_iter().chain(self.sources).collect();
        ReconcileLoop::new(reconciler, &primary, parts, self.triggers, access, self.limiter, self.options)
    }

    /// Runs the controller until Ctrl-C or SIGTERM, for a program that consists of one controller. A second
    /// signal drops the reconciles that are still running.
    ///
    /// # Errors
    /// Returns a [`RunError`] if a source that is not [optional](Watching::optional) can never sync, if
    /// another controller of the same metrics registry has the same name, or if a second signal arrived.
    pub async fn run<R: Reconciler<K>>(self, reconciler: R) -> Result<(), RunError> {
        let owned = self.owns_factory.then(|| self.factory.clone());
        let name = self.options.name.to_string();
        let reconcile_loop = self.reconcile_with(reconciler);
        let failed = |source| RunError::Run { name: name.clone(), source };
        let stop = CancellationToken::new();
        let running = async {
            reconcile_loop.prepare(stop.clone()).await?;
            reconcile_loop.run(stop.clone()).await
        };
        let mut signals = Signals::listen().map_err(|error| failed(Box::new(error)))?;
        let signalled = async {
            signals.next().await;
            stop.cancel();
            signals.next().await
        };
        let ended = tokio::select! {
            biased;
            signal = signalled => Err(failed(Box::new(AskedTwice(signal)))),
            ended = running => ended,
        };
        if let Some(factory) = owned {
            factory.shutdown().await;
        }
        ended
    }
}

/// A second signal arrived before the shutdown was complete.
#[derive(Debug, thiserror::Error)]
#[error("second {0} received; running reconciles were dropped")]
struct AskedTwice(Signal);

impl Part {
    fn of<W: Object>(source: Arc<InformerSource<W>>) -> Self {
        Self { source: Arc::clone(&source) as _, cache: source }
    }
}

/// Returns the complete API access: read access to the sources, and the declared uses in the namespaces of
/// the primary objects.
fn access_of<K: Object>(primary: &InformerSource<K>, sources: &[Part], uses: Vec<Use>) -> Vec<Access> {
    let mut access = primary.access();
    access.extend(sources.iter().flat_map(|part| part.source.access()));
    for Use { group, resource, is_cluster_wide, verbs } in uses {
        let namespaces = if is_cluster_wide { vec![None] } else { primary.namespaces() };
        access.extend(namespaces.into_iter().map(|namespace| Access {
            group: group.clone(),
            resource: resource.clone(),
            namespace,
            verbs: verbs.iter().copied().collect(),
        }));
    }
    access
}

impl<K: Object> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.options.name)
            .field("primary", &self.primary)
            .field("sources", &self.sources.iter().map(|part| part.source.name()).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
