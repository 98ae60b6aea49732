//! The manager: runs several controllers as one program.
//!
//! A [`Manager`] owns everything that controllers share: client, caches, leader election, events, metrics and
//! HTTP endpoints. It starts controllers in a fixed order and stops them in reverse.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper_controller::{
//!     Action, Context, Controller, ReconcileError, Request,
//!     events::{EventType, Recorder},
//!     leader::LeaderElection,
//!     manager::{Manager, ManagerError},
//! };
//!
//! async fn reconcile(request: Request<ConfigMap>, context: Context) -> Result<Action, ReconcileError> {
//!     if let (Some(config), Some(recorder)) = (request.object, context.get::<Recorder>()) {
//!         recorder.event(&*config, EventType::Normal, "Reconciled", "Reconcile", "the till is up to date");
//!     }
//! #   context.get::<tokio_util::sync::CancellationToken>().expect("given").cancel();
//!     Ok(Action::done())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ManagerError> {
//! # let client = watchkeeper_client::Client::from(watchkeeper_apiserver::ApiServer::in_process().client());
//! # let config: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "till"}}"#).expect("an object");
//! # let configs = client.resource::<ConfigMap>().default_namespace();
//! # configs.create(&kube_core::params::PostParams::default(), &config).await.expect("created");
//! let mut manager = Manager::builder(client)
//!     .leader_election(LeaderElection::new("default", "shop.example.com"))
//!     .build();
//! # let stop = tokio_util::sync::CancellationToken::new();
//! let controller = Controller::<ConfigMap>::on(manager.factory())
//!     .named("shop")
//!     .with(manager.recorder("shop"))
//! #   .with(stop.clone())
//!     .reconcile_with(reconcile);
//! manager.add(controller)?;
//! # if true { return manager.run_until(stop).await; }
//! manager.run().await // until SIGTERM or SIGINT
//! # }
//! ```

mod builder;
mod error;
mod run;
mod runnable;
mod signals;
mod task_group;

use std::{fmt, net::SocketAddr, sync::Arc};

use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_informer::SharedInformerFactory;

pub use builder::ManagerBuilder;
pub use error::{ManagerError, Signal};
pub use runnable::{RunError, Runnable};
pub(crate) use signals::TerminationSignals;

use crate::{
    events::{EventWriter, Recorder},
    http::{CheckResult, Checks},
    leader::{LeaderElector, Leadership},
    metrics::{ControllerMetrics, DuplicateName},
    options::ManagerOptions,
    rbac::Access,
    time::Time,
};

/// A supervisor that starts, monitors and stops the controllers of a program.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use tokio_util::sync::CancellationToken;
/// use watchkeeper_controller::{
///     Action, Context, Controller, ReconcileError, Request,
///     manager::{Manager, ManagerError},
/// };
///
/// async fn reconcile(_: Request<ConfigMap>, _: Context) -> Result<Action, ReconcileError> {
///     Ok(Action::done())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ManagerError> {
/// # let client = watchkeeper_apiserver::ApiServer::in_process().client();
/// let mut manager = Manager::builder(client).build();
/// let controller = Controller::<ConfigMap>::on(manager.factory()).reconcile_with(reconcile);
/// manager.add(controller)?;
/// manager.add_health_check("queue", || Ok(()));
///
/// let stop = CancellationToken::new(); // cancelled elsewhere; `Manager::run` stops on SIGTERM instead
/// # stop.cancel();
/// manager.run_until(stop).await
/// # }
/// ```
///
/// The [module documentation](self) has an example with leader election and events.
///
/// # Guarantees
///
/// 1. **Start order**: the HTTP endpoints are served; the informers of the factory start; runnables that do
///    not need leadership prepare and run; all other runnables prepare (sync their caches) on every replica;
///    the replica waits for leadership; runnables that need leadership run. A standby replica therefore has
///    warm caches and reports ready.
/// 2. **Stop order is the reverse**: runnables that need leadership end; the lease is released; all other
///    runnables end; pending events are written; caches stop; the endpoints close.
/// 3. **The lease is held until the work has ended.** If some of the work did not end by itself, the lease is
///    left to expire.
/// 4. **A lost lease stops the work** immediately, and the manager returns [`ManagerError::LeaseLost`]. Work
///    that has not ended when another replica may start is dropped.
/// 5. **One failure stops everything**, in order: [`run`](Self::run) returns the first error or panic of a
///    runnable. A runnable that returns `Ok` has finished, and the others continue.
/// 6. **No task outlives the manager**: when `run` returns, none of its tasks is running. Code that blocks a
///    thread is the exception, because it cannot be cancelled.
/// 7. **Every error has an exit code**: [`ManagerError::exit_code`].
pub struct Manager {
    client: Client,
    /// The client without the leadership fence, for requests of the manager.
    own_client: Client,
    factory: SharedInformerFactory,
    options: ManagerOptions,
    elector: Option<LeaderElector>,
    election_namespace: Option<String>,
    leadership: Option<Leadership>,
    runnables: Vec<Arc<dyn Runnable>>,
    registry: Registry,
    metrics: ControllerMetrics,
    recorder: Recorder,
    event_writer: EventWriter,
    has_recorders: std::sync::atomic::AtomicBool,
    health: Arc<Checks>,
    readiness: Arc<Checks>,
    endpoints: watch::Sender<Endpoints>,
    time: Time,
}

/// The addresses that a manager listens on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoints {
    /// The address of `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// The address of `/healthz`, `/livez` and `/readyz`.
    pub health: Option<SocketAddr>,
}

impl Manager {
    /// Returns a builder of a manager for one cluster.
    pub fn builder(client: impl Into<Client>) -> ManagerBuilder {
        ManagerBuilder::new(client.into())
    }

    /// Adds a controller or another [`Runnable`], which [`run`](Self::run) starts.
    ///
    /// Registers the metrics of a controller and of its work queue with the manager's registry, so that `/metrics` shows them from the
    /// start.
    ///
    /// # Errors
    /// Returns [`ManagerError::DuplicateName`] if a runnable of the same name has been added, or if a controller of the same name
    /// reports to the same metrics registry.
    #[doc(alias = "Add")]
    pub fn add(&mut self, mut runnable: impl Runnable) -> Result<&mut Self, ManagerError> {
        if self.runnables.iter().any(|added| added.name() == runnable.name()) {
            return Err(DuplicateName::new(runnable.name()).into());
        }
        runnable.register_metrics(&self.metrics)?;
        self.runnables.push(Arc::new(runnable));
        Ok(self)
    }

    /// Returns the client for controllers. Its requests are counted and, if configured, fenced by leadership.
    #[doc(alias = "GetClient")]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the factory of the informers that controllers share.
    ///
    /// The manager starts all informers that were requested before it runs, including those that no
    /// controller uses, and shuts the factory down when it ends. Start an informer that is requested later
    /// with [`start`](SharedInformerFactory::start).
    #[doc(alias = "GetCache")]
    pub fn factory(&self) -> &SharedInformerFactory {
        &self.factory
    }

    /// Returns the leadership handle, or `None` without leader election.
    #[doc(alias = "Elected")]
    pub fn leadership(&self) -> Option<Leadership> {
        self.leadership.clone()
    }

    /// Returns the registry behind `/metrics`, to register metrics of the program before it runs. The manager
    /// has already registered the metrics of leader election, informers, requests, events and the process;
    /// [`add`](Self::add) registers those of each controller and its queue.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Returns the controller and queue metrics of the manager's registry, for a controller that runs without
    /// being [added](Self::add). See [`Controller::metrics`](crate::Controller::metrics).
    pub fn metrics(&self) -> &ControllerMetrics {
        &self.metrics
    }

    /// Returns an event recorder for the controller of this name. Events are written while the manager runs;
    /// pending events are written when it ends.
    #[doc(alias = "GetEventRecorder")]
    pub fn recorder(&self, controller: &str) -> Recorder {
        self.has_recorders.store(true, std::sync::atomic::Ordering::Relaxed);
        self.recorder.named(controller)
    }

    /// Adds a check to `/healthz` and `/livez`. The check should not depend on the API server, because a
    /// restart does not repair the server.
    #[doc(alias = "AddHealthzCheck")]
    pub fn add_health_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> CheckResult + Send + Sync + 'static,
    ) {
        self.health.add(name, check);
    }

    /// Adds a check to `/readyz`.
    #[doc(alias = "AddReadyzCheck")]
    pub fn add_readiness_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> CheckResult + Send + Sync + 'static,
    ) {
        self.readiness.add(name, check);
    }

    /// Returns the addresses that the manager listens on. They are set once it runs, including ports that the
    /// system chose.
    pub fn endpoints(&self) -> watch::Receiver<Endpoints> {
        self.endpoints.subscribe()
    }

    /// Returns the API access that the manager and its runnables need in this configuration; access to leases
    /// is included only with leader election. For the roles of a program whose flags enable leader election,
    /// see `ManagerArgs::manifests`.
    pub fn access(&self) -> Vec<Access> {
        let mut access: Vec<Access> = self.runnables.iter().flat_map(|runnable| runnable.access()).collect();
        access.extend(self.election_namespace.as_ref().map(Access::leader_election));
        if self.has_recorders.load(std::sync::atomic::Ordering::Relaxed) {
            access.push(Access::events());
        }
        access
    }

    /// Runs until SIGTERM or SIGINT, then shuts down. A second signal terminates immediately.
    ///
    /// # Errors
    /// Returns a [`ManagerError`] if startup or a runnable fails, if the lease is lost, or if a runnable does
    /// not end in time.
    #[doc(alias = "Start")]
    #[doc(alias = "SetupSignalHandler")]
    pub async fn run(self) -> Result<(), ManagerError> {
        let mut signals = TerminationSignals::listen().map_err(ManagerError::Signals)?;
        let stop = CancellationToken::new();
        let mut running = Box::pin(self.run_until(stop.clone()));
        let signal = tokio::select! {
            result = running.as_mut() => return result,
            signal = signals.next() => signal,
        };
        tracing::info!(%signal, "signal received; stopping");
        stop.cancel();
        tokio::select! {
            result = running => result,
            signal = signals.next() => Err(ManagerError::Interrupted { signal }),
        }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runnables: Vec<&str> = self.runnables.iter().map(|runnable| runnable.name()).collect();
        f.debug_struct("Manager")
            .field("options", &self.options)
            .field("leadership", &self.leadership)
            .field("runnables", &runnables)
            .finish_non_exhaustive()
    }
}
