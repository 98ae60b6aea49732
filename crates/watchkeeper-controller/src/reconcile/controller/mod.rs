//! The builder of a controller.

mod access;
mod options;
mod settings;
mod sources;

use std::{any::TypeId, fmt, sync::Arc};

use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_informer::{Object, ObjectKey, SharedInformerFactory, factory::CollectionScope};
use watchkeeper_workqueue::RateLimiter;

pub(super) use self::options::ControllerOptions;
pub use self::options::{AbandonReason, AbandonedKey};
use self::{
    access::{DeclaredUse, access_of},
    options::default_limiter,
};
use super::{ReconcileLoop, Reconciler};
use crate::{
    Triggers, Watch,
    manager::{RunError, Runnable as _, Signal, TerminationSignals},
    trigger::{Role, Source},
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
/// # Example
///
/// A controller of nodes that is also called when a pod of the node changes. A token stops the controller here;
/// [`Controller::run`] stops on SIGTERM instead.
///
/// ```
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use tokio_util::sync::CancellationToken;
/// use watchkeeper_apiserver::ApiServer;
/// use watchkeeper_controller::{
///     Action, Context, Controller, ReconcileError, Request, each_state, manager::Runnable as _,
/// };
/// use watchkeeper_informer::ObjectKey;
///
/// async fn reconcile(request: Request<Node>, context: Context) -> Result<Action, ReconcileError> {
///     let pods = context.reader::<Pod>()?.snapshot();
///     println!("{} exists: {}, {} pods in total", request.name(), request.object.is_some(), pods.len());
///     Ok(Action::done())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::in_process();
/// let node_of = |pod: &Pod| ObjectKey::new(None, pod.spec.as_ref()?.node_name.as_deref()?).ok();
/// let controller = Controller::<Node>::new(server.client())
///     .watches::<Pod, _>(each_state(node_of))
///     .workers(4)
///     .reconcile_with(reconcile);
/// let stop = CancellationToken::new(); // cancelled elsewhere
/// # stop.cancel();
/// controller.run(stop).await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "NewControllerManagedBy")]
#[must_use = "a controller does nothing until it is run"]
#[doc(alias = "EnqueueRequestForObject")]
pub struct Controller<K: Object> {
    factory: SharedInformerFactory,
    /// Whether the controller created the factory, and shuts it down at the end.
    owns_factory: bool,
    primary: Watch<K>,
    /// The sources other than the primary one.
    sources: Vec<Arc<dyn Source>>,
    uses: Vec<DeclaredUse>,
    triggers: Vec<Triggers>,
    limiter: Box<dyn RateLimiter<ObjectKey>>,
    options: ControllerOptions,
}

impl<K> Controller<K>
where
    K: Object + DeserializeOwned,
    K::DynamicType: Default,
    K::Scope: CollectionScope<K>,
{
    /// Creates a controller for all objects of kind `K`, with its own informers. The informers stop with the
    /// controller.
    #[doc(alias = "NewController")]
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
    #[doc(alias = "ControllerManagedBy")]
    pub fn on(factory: &SharedInformerFactory) -> Self {
        Self::on_with(factory, Watch::new())
    }
}

impl<K: Object> Controller<K> {
    /// Creates a controller whose primary objects are watched with special settings: other namespaces, a
    /// selector, or a kind known at run time.
    #[doc(alias = "For")]
    pub fn on_with(factory: &SharedInformerFactory, primary: Watch<K>) -> Self {
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
            options: ControllerOptions::new(name, client),
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
    #[doc(alias = "BaseContext")]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.options.values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }
}

/// Building and running.
impl<K: Object> Controller<K> {
    /// Returns the controller with its reconciler, to be run by a manager or by the caller.
    pub fn reconcile_with<R: Reconciler<K>>(self, reconciler: R) -> ReconcileLoop<K, R> {
        let primary = Arc::new(self.primary.into_source(&self.factory, Role::Primary));
        let access = access_of(&primary, &self.sources, self.uses);
        let sources = [Arc::clone(&primary) as _].into_iter().chain(self.sources).collect();
        ReconcileLoop::new(reconciler, &primary, sources, self.triggers, access, self.limiter, self.options)
    }

    /// Runs the controller until Ctrl-C or SIGTERM, for a program that consists of one controller. A second
    /// signal drops the reconciles that are still running.
    ///
    /// # Errors
    /// Returns a [`RunError`] if a source that is not [optional](Watch::optional) can never sync, if
    /// another controller of the same metrics registry has the same name, or if a second signal arrived.
    #[doc(alias = "graceful_shutdown_on")]
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
        let mut signals = TerminationSignals::listen().map_err(|error| failed(Box::new(error)))?;
        let signalled = async {
            signals.next().await;
            stop.cancel();
            signals.next().await
        };
        let ended = tokio::select! {
            biased;
            signal = signalled => Err(failed(Box::new(SecondSignal(signal)))),
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
struct SecondSignal(Signal);

impl<K: Object> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.options.name)
            .field("primary", &self.primary)
            .field("sources", &self.sources.iter().map(|source| source.name()).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
