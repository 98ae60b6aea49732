//! Several controllers as one program.
//!
//! A [`Manager`] has what controllers share: the client, the caches, the lease, the events, the metrics and the endpoints; it starts them
//! in one order and ends them in the other.
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
//!         recorder.event(&*config, EventType::Normal, "Seen", "Look", "it was looked at");
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
mod group;
mod run;

use std::{fmt, net::SocketAddr, sync::Arc};

use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_informer::SharedInformerFactory;

pub use builder::ManagerBuilder;
pub use error::{ManagerError, Signal};

use crate::{
    access::Access,
    events::{EventWriter, Recorder},
    http::{CheckResult, Checks},
    leader::{LeaderElector, Leadership},
    metrics::{ControllerMetrics, DuplicateName},
    options::ManagerOptions,
    runnable::Runnable,
    signals::Signals,
    time::Time,
};

/// Starts, watches and ends the controllers of a program.
///
/// # What it promises
///
/// 1. **Started in this order**: the endpoints answer; the informers of the factory start; what needs no leadership prepares and runs;
///    everything else prepares (fills its caches), on every replica; the replica waits to lead; what needs leadership runs. So a replica
///    that stands by is warm, and reports that it is ready.
/// 2. **Ended in the reverse order**: what needs leadership ends; the lease is let go; everything else ends; events that wait are
///    written; caches stop; the endpoints close.
/// 3. **The lease is held until the work has ended**, and left to run out if some of it did not end by itself.
/// 4. **A lost lease ends the work** at once, and the manager with [`ManagerError::LeaseLost`]. What has not ended when another
///    replica may start is dropped.
/// 5. **One failure ends everything**, in order, and is what [`run`](Self::run) returns: an error or a panic of a runnable. One that returns
///    without an error has done its work, and nothing else happens.
/// 6. **Nothing is left behind**: when `run` has returned, no task of the manager runs; except code that blocks a thread, which nobody can end.
/// 7. **Every end has a code**: [`ManagerError::exit_code`].
pub struct Manager {
    client: Client,
    /// The same client without a fence, for the manager's own requests.
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

/// Where a manager listens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoints {
    /// Where `/metrics` is.
    pub metrics: Option<SocketAddr>,
    /// Where `/healthz`, `/livez` and `/readyz` are.
    pub health: Option<SocketAddr>,
}

impl Manager {
    /// A manager of controllers of one cluster, to be made.
    pub fn builder(client: impl Into<Client>) -> ManagerBuilder {
        ManagerBuilder::new(client.into())
    }

    /// Adds a controller, or anything else that is [`Runnable`]. It is started by [`run`](Self::run).
    ///
    /// Registers the metrics of a controller and of its work queue with the manager's registry, so that `/metrics` shows them from the
    /// start.
    ///
    /// # Errors
    /// Returns [`ManagerError::DuplicateName`] if a runnable of the same name has been added, or if a controller of the same name
    /// reports to the same metrics registry.
    #[doc(alias = "NewControllerManagedBy")]
    pub fn add(&mut self, mut runnable: impl Runnable) -> Result<&mut Self, ManagerError> {
        if self.runnables.iter().any(|added| added.name() == runnable.name()) {
            return Err(DuplicateName::new(runnable.name()).into());
        }
        runnable.register_metrics(&self.metrics)?;
        self.runnables.push(Arc::new(runnable));
        Ok(self)
    }

    /// The client controllers should use: its requests are counted and, if the options say so, fenced.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the factory of the informers that controllers share.
    ///
    /// The manager starts the informers that were requested before it runs, also those that no controller uses, and shuts
    /// the factory down when it ends. An informer that is requested later is started by
    /// [`start`](SharedInformerFactory::start).
    pub fn factory(&self) -> &SharedInformerFactory {
        &self.factory
    }

    /// Who leads; `None` without leader election.
    pub fn leadership(&self) -> Option<Leadership> {
        self.leadership.clone()
    }

    /// Returns the registry behind `/metrics`, to add metrics of the program before it runs. The manager has registered those of
    /// leader election, requests, events and the process; [`add`](Self::add) registers those of each controller and its queue.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Returns the controller and queue metrics of the manager's registry, for a controller that runs without being
    /// [added](Self::add): see [`Controller::metrics`](crate::Controller::metrics).
    pub fn metrics(&self) -> &ControllerMetrics {
        &self.metrics
    }

    /// A recorder of events for a controller of this name. Its events are written for as long as the manager runs, and those that
    /// wait when it ends are written then.
    pub fn recorder(&self, controller: &str) -> Recorder {
        self.has_recorders.store(true, std::sync::atomic::Ordering::Relaxed);
        self.recorder.named(controller)
    }

    /// Adds a check to `/healthz` and `/livez`. It should not depend on the API server: a restart does not mend that.
    pub fn add_health_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> CheckResult + Send + Sync + 'static,
    ) {
        self.health.add(name, check);
    }

    /// Adds a check to `/readyz`.
    pub fn add_readiness_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> CheckResult + Send + Sync + 'static,
    ) {
        self.readiness.add(name, check);
    }

    /// Where it listens, known once it runs; a port that was left to the system too.
    pub fn endpoints(&self) -> watch::Receiver<Endpoints> {
        self.endpoints.subscribe()
    }

    /// Returns the access to the API that the manager and its runnables need as they are configured: without leader election, none to
    /// leases. For the roles of a program whose flags choose leader election, see `ManagerArgs::manifests`.
    pub fn access(&self) -> Vec<Access> {
        let mut access: Vec<Access> = self.runnables.iter().flat_map(|runnable| runnable.access()).collect();
        access.extend(self.election_namespace.as_ref().map(Access::leader_election));
        if self.has_recorders.load(std::sync::atomic::Ordering::Relaxed) {
            access.push(Access::events());
        }
        access
    }

    /// Runs until SIGTERM or SIGINT, then ends everything. A second signal ends it at once.
    ///
    /// # Errors
    /// When it could not start, when something failed, when the lease was lost, when something did not end in time.
    pub async fn run(self) -> Result<(), ManagerError> {
        let mut signals = Signals::listen().map_err(ManagerError::Signals)?;
        let stop = CancellationToken::new();
        let mut running = Box::pin(self.run_until(stop.clone()));
        let signal = tokio::select! {
            result = running.as_mut() => return result,
            signal = signals.next() => signal,
        };
        tracing::info!(%signal, "stopping");
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
