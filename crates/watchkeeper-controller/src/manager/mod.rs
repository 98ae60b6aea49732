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
//! # let client = watchkeeper_apiserver::ApiServer::in_process().client();
//! # let config: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "till"}}"#).expect("an object");
//! # let configs = kube_client::Api::<ConfigMap>::default_namespaced(client.clone());
//! # configs.create(&kube_core::params::PostParams::default(), &config).await.expect("created");
//! let mut manager = Manager::builder(client)
//!     .leader_election(LeaderElection::new("default", "shop.example.com"))
//!     .build();
//! # let stop = tokio_util::sync::CancellationToken::new();
//! let controller = Controller::<ConfigMap>::on(manager.factory())
//!     .named("shop")
//!     .metrics(manager.metrics())
//!     .with(manager.recorder("shop"))
//! #   .with(stop.clone())
//!     .reconcile_with(reconcile);
//! manager.add(controller);
//! # if true { return manager.run_until(stop).await; }
//! manager.run().await // until SIGTERM or SIGINT
//! # }
//! ```

mod builder;
mod error;
mod group;
mod run;
mod signals;

use std::{fmt, net::SocketAddr, sync::Arc};

use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_informer::SharedInformerFactory;

pub use builder::ManagerBuilder;
pub use error::{ManagerError, Signal};

use self::signals::Signals;
use crate::{
    access::{Access, Verb},
    events::{EventWriter, Recorder},
    http::{CheckResult, Checks},
    leader::{LeaderElector, Leadership},
    metrics::ControllerMetrics,
    options::ManagerOptions,
    runnable::Runnable,
    time::Time,
};

/// Starts, watches and ends the controllers of a program.
///
/// # What it promises
///
/// 1. **Started in this order**: the endpoints answer; what needs no leadership prepares and runs; everything else prepares (fills its
///    caches), on every replica; the replica waits to lead; what needs leadership runs. So a replica that stands by is warm, and says
///    it is ready.
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

    /// Adds something to run. It is started by [`run`](Self::run).
    pub fn add(&mut self, runnable: impl Runnable) -> &mut Self {
        self.runnables.push(Arc::new(runnable));
        self
    }

    /// The client controllers should use: its requests are counted and, if the options say so, fenced.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The informers controllers share. They are shut down when the manager ends.
    pub fn factory(&self) -> &SharedInformerFactory {
        &self.factory
    }

    /// Who leads; `None` without leader election.
    pub fn leadership(&self) -> Option<Leadership> {
        self.leadership.clone()
    }

    /// Every metric of the program, to add one's own before it runs. Registered already: those of controllers and their queues, of
    /// the leader election, of requests, of events and of the process.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// The metrics of controllers and their queues in the manager's registry, to be handed to
    /// [`Controller::metrics`](crate::Controller::metrics).
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

    /// What it and everything it runs does to the API: what its role must allow.
    pub fn access(&self) -> Vec<Access> {
        let mut access: Vec<Access> = self.runnables.iter().flat_map(|runnable| runnable.access()).collect();
        if let Some(namespace) = &self.election_namespace {
            let verbs = [Verb::Get, Verb::Create, Verb::Update];
            access.push(Access::new("coordination.k8s.io", "leases", verbs).in_namespace(namespace));
        }
        if self.has_recorders.load(std::sync::atomic::Ordering::Relaxed) {
            access.push(Access::new("events.k8s.io", "events", [Verb::Create, Verb::Patch]));
        }
        access
    }

    /// Runs until SIGTERM or SIGINT, then ends everything. A second signal ends it at once.
    ///
    /// # Errors
    /// When it could not start, when something failed, when the lease was lost, when something did not end in time.
    pub async fn run(self) -> Result<(), ManagerError> {
        let mut signals = Signals::new().map_err(ManagerError::Signals)?;
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
