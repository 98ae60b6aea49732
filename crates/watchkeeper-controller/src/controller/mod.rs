//! A controller, put together.

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

/// Reconciles the objects of kind `K`: puts together where keys come from, who works on them, and how.
///
/// # What it promises
///
/// 1. **Every change is followed by a look.** After the last change of an object, or of one that maps to it, its key is
///    reconciled with that change in the cache, unless a [predicate](crate::predicate) leaves it out. Changes in a row
///    may share one look.
/// 2. **One worker a key.** A key is never reconciled twice at the same time.
/// 3. **Failures are kept to their key.** An error, a panic or a reconcile that takes too long is counted, told and tried
///    again after a backoff of its own; other keys, and the worker, go on.
/// 4. **Sources are on their own.** A watch that fails delays no event of another.
/// 5. **What was written is seen.** A reconcile does not begin before the controller's caches show what earlier ones wrote
///    for the same key, within a [time limit](Self::freshness_timeout).
/// 6. **What is new goes first.** First lists and resyncs queue at low priority, and are never starved.
/// 7. **It ends.** When asked to stop it begins nothing new, lets what runs finish within a [time](Self::stop_within), drops
///    the rest at an `await`, and returns when nothing runs.
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
    /// It made the factory itself, and ends it with itself.
    owns_factory: bool,
    primary: Watching<K>,
    /// All but the primary one.
    sources: Vec<Part>,
    uses: Vec<Use>,
    triggers: Vec<Triggers>,
    limiter: Box<dyn RateLimiter>,
    options: Options,
}

/// A source, in its two capacities.
pub(crate) struct Part {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) cache: Arc<dyn FollowedCache>,
}

/// A resource that is used, wherever the controller works.
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
    /// Returns a controller of all objects of kind `K`, with informers of its own. They stop with the controller.
    pub fn new(client: impl Into<Client>) -> Self {
        let mut controller = Self::on(&SharedInformerFactory::new(client));
        controller.owns_factory = true;
        controller
    }

    /// Returns a controller of the objects of kind `K` in the factory's scope, with informers that the factory shares.
    ///
    /// The controller starts them. The factory owns them, so they run on when the controller has ended, until the factory
    /// is shut down or [releases](SharedInformerFactory::release) them.
    pub fn on(factory: &SharedInformerFactory) -> Self {
        Self::watching(factory, Watching::new())
    }
}

impl<K: Object> Controller<K> {
    /// A controller of objects that are watched in a special way: other namespaces, a selector, a kind known at run time.
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

    /// Sets the client of reconcilers, instead of the factory's.
    pub fn client(mut self, client: impl Into<Client>) -> Self {
        self.options.client = Some(client.into());
        self
    }

    /// Gives reconcilers a value: [`Context::get`](crate::Context::get). One of each type.
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.options.values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }
}

/// Where keys come from.
impl<K: Object> Controller<K> {
    /// Has only changes of the objects themselves count that the predicate admits. Of several, all must.
    pub fn filter(mut self, predicate: impl Predicate<K>) -> Self {
        self.primary = self.primary.filter(predicate);
        self
    }

    /// Lets the controller start while its own kind is not there, or may not be watched: see [`Watching::optional`].
    pub fn optional(mut self) -> Self {
        self.primary = self.primary.optional();
        self
    }

    /// Has every object of its own kind looked at again this often, at low priority and whatever a filter says. Never,
    /// unless said otherwise; what the factory resyncs comes as well, and is filtered.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.options.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Watches objects of a kind that objects of kind `K` control, and has the controlling one looked at: the owner whose
    /// reference says `controller: true`, of this group and kind. Both, when an object is handed over.
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

    /// As [`owns`](Self::owns), with more to choose.
    pub fn owns_with<W: Object>(self, watching: Watching<W>) -> Self
    where
        K::DynamicType: Default,
        K::Scope: 'static,
    {
        self.watches_with(watching, mapping::to_controller::<K, W>())
    }

    /// Watches objects of a kind, and has the keys looked at that a function finds for each change. It sees the old and
    /// the new state; [`each_state`](crate::each_state) makes it from a function of one object.
    ///
    /// The function is called for every change, and must not wait. One that panics has found nothing.
    pub fn watches<W, F>(self, map: F) -> Self
    where
        W: Object + DeserializeOwned,
        W::DynamicType: Default,
        W::Scope: CollectionScope<W>,
        F: Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.watches_with(Watching::new(), map)
    }

    /// As [`watches`](Self::watches), for an informer that is there already.
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

    /// As [`watches`](Self::watches), with more to choose.
    pub fn watches_with<W: Object>(
        mut self,
        watching: Watching<W>,
        map: impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let source = watching.into_source(&self.factory, Role::Mapped(Arc::new(map)));
        self.sources.push(Part::of(Arc::new(source)));
        self
    }

    /// Has keys looked at that come from outside.
    pub fn channel(mut self, triggers: &Triggers) -> Self {
        self.triggers.push(triggers.clone());
        self
    }
}

/// How keys are worked on.
impl<K: Object> Controller<K> {
    /// Sets how many keys are worked on at the same time. 1 unless said otherwise, and at least that.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// Sets how long a reconcile may take; it is then dropped at its next `await`, and counts as a failure. No limit unless
    /// said otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets how often a key that fails is tried again, before it is given up until something changes. With 5 it is tried
    /// six times. No limit unless said otherwise.
    pub fn retry_limit(mut self, retries: u32) -> Self {
        self.options.retry_limit = Some(retries);
        self
    }

    /// Has this told when a key is given up: because it failed too often, or said that trying again is of no use.
    pub fn on_give_up(mut self, hook: impl Fn(&GaveUp<'_>) + Send + Sync + 'static) -> Self {
        self.options.on_give_up = Some(Arc::new(hook));
        self
    }

    /// Sets how long a key that failed waits. By default each key from 5 ms doubling to 1000 s.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Sets how long reconciles have to finish when the controller is asked to stop; then they are dropped. 30 s unless said
    /// otherwise.
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

    /// Has reconciles begin whether or not the caches show what was written before.
    pub fn without_freshness(mut self) -> Self {
        self.options.freshness_timeout = None;
        self
    }

    /// Sets when a key that keeps itself busy is reported.
    pub fn hot_loops(mut self, limits: HotLoopLimits) -> Self {
        self.options.hot_loops = Some(limits);
        self
    }

    /// Has nobody look for keys that keep themselves busy.
    pub fn without_hot_loops(mut self) -> Self {
        self.options.hot_loops = None;
        self
    }

    /// Has this told of keys that keep themselves busy, beside the log and the metric.
    pub fn on_hot_loop(mut self, hook: impl Fn(&HotLoop) + Send + Sync + 'static) -> Self {
        self.options.on_hot_loop = Some(Arc::new(hook));
        self
    }

    /// Reports to `metrics`. A controller that is added to a manager needs this only to report to a registry other than the manager's:
    /// [`Manager::add`](crate::manager::Manager::add) registers the metrics of every controller.
    ///
    /// The series are created by [`reconcile_with`](Self::reconcile_with) and removed when the controller is dropped. If another
    /// controller of the registry has the same name, the controller does not start and reports
    /// [`DuplicateName`](crate::metrics::DuplicateName).
    pub fn metrics(mut self, metrics: &ControllerMetrics) -> Self {
        self.options.metrics = Some(metrics.clone());
        self
    }

    /// Takes the time from here. Tokio's unless said otherwise.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// Runs workers through this instead of in the runtime it is run in.
    pub fn spawn(mut self, spawn: impl Spawn) -> Self {
        self.options.spawn = Some(Arc::new(spawn));
        self
    }

    /// Runs on every replica, not only on the one that leads.
    pub fn on_every_replica(mut self) -> Self {
        self.options.needs_leadership = false;
        self
    }
}

/// What it does to the API.
impl<K: Object> Controller<K> {
    /// Declares what reconciles do to objects of a kind, beside watching them, wherever the controller works.
    pub fn uses<W: Object>(self, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>("", verbs)
    }

    /// As [`uses`](Self::uses), of the `status` subresource.
    pub fn uses_status<W: Object>(self, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>("/status", verbs)
    }

    /// As [`uses`](Self::uses), of another subresource.
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

/// What becomes of it.
impl<K: Object> Controller<K> {
    /// The controller with its reconciler, to be run by a manager, or by hand.
    pub fn reconcile_with<R: Reconciler<K>>(self, reconciler: R) -> ReconcileLoop<K, R> {
        let primary = Arc::new(self.primary.into_source(&self.factory, Role::Primary));
        let access = access_of(&primary, &self.sources, self.uses);
        let parts = [Part::of(Arc::clone(&primary))].into_iter().chain(self.sources).collect();
        ReconcileLoop::new(reconciler, &primary, parts, self.triggers, access, self.limiter, self.options)
    }

    /// Runs until the program is asked to end, by Ctrl-C or SIGTERM: for a program that is one controller. Asked a second
    /// time, it drops what is still running.
    ///
    /// # Errors
    /// When a source that is not [optional](Watching::optional) will never be there, and why; when another controller of the same
    /// metrics registry has its name; or when it was asked to end twice.
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

/// The program was asked to end again, before it had.
#[derive(Debug, thiserror::Error)]
#[error("asked to end a second time, by {0}; what was running was dropped")]
struct AskedTwice(Signal);

impl Part {
    fn of<W: Object>(source: Arc<InformerSource<W>>) -> Self {
        Self { source: Arc::clone(&source) as _, cache: source }
    }
}

/// Everything that is done to the API: sources are read, uses are used where the primary objects are.
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
