//! The builder of [`Manager`].

use std::sync::{Arc, atomic::AtomicBool};

use prometheus_client::registry::Registry;
use tokio::sync::watch;
use watchkeeper_client::Client;
use watchkeeper_informer::SharedInformerFactory;

use super::Manager;
use crate::{
    events::{self, EventMetrics, EventOptions},
    http::Checks,
    leader::{LeaderElection, LeaderElector, LeaderMetrics},
    metrics::{ControllerMetrics, RestMetrics, register_informer_metrics, register_process_metrics},
    options::ManagerOptions,
    time::Time,
};

/// A builder of a [`Manager`], returned by [`Manager::builder`].
///
/// ```
/// use watchkeeper_controller::{leader::LeaderElection, manager::Manager, options::ManagerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let client = watchkeeper_apiserver::ApiServer::in_process().client();
/// let mut options = ManagerOptions::default();
/// options.metrics_address = Some(([0, 0, 0, 0], 8080).into());
/// let election = LeaderElection::new("shop", "shop.example.com"); // the namespace and the name of the lease
/// let manager = Manager::builder(client).options(options).leader_election(election).build();
/// # drop(manager);
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a builder has no effect until the manager is built"]
pub struct ManagerBuilder {
    client: Client,
    options: ManagerOptions,
    election: Option<LeaderElection>,
    events: EventOptions,
    time: Time,
    registry: Registry,
}

impl ManagerBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            options: ManagerOptions::default(),
            election: None,
            events: EventOptions::default(),
            time: Time::system(),
            registry: Registry::default(),
        }
    }

    /// Sets the addresses of the HTTP endpoints, time limits and checks. Defaults to [`ManagerOptions::default`], which
    /// serves no endpoints.
    pub fn options(mut self, options: ManagerOptions) -> Self {
        self.options = options;
        self
    }

    /// Enables leader election: controllers run only while this replica leads. Defaults to none, so that every replica
    /// runs its controllers. `None`, as from a command-line flag, also disables leader election.
    pub fn leader_election(mut self, election: impl Into<Option<LeaderElection>>) -> Self {
        self.election = election.into();
        self
    }

    /// Sets the limits and intervals of event recording. Defaults to [`EventOptions::default`].
    pub fn events(mut self, events: EventOptions) -> Self {
        self.events = events;
        self
    }

    /// Sets the clock, for tests with virtual time. Defaults to [`Time::system`].
    pub fn time(mut self, time: Time) -> Self {
        self.time = time;
        self
    }

    /// Sets the metrics registry, such as one that already contains metrics of the program. Defaults to an empty
    /// registry.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Builds the manager without starting anything.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, as [`watchkeeper_client::kube_client::Client::new`] does.
    pub fn build(self) -> Manager {
        let Self { client, options, election, events, time, mut registry } = self;
        register_process_metrics(&mut registry);
        let metrics = ControllerMetrics::register(&mut registry);
        let leader_metrics = LeaderMetrics::register(&mut registry);
        let event_metrics = EventMetrics::register(&mut registry);
        let own_client = RestMetrics::register(&mut registry).count(&client, &time);
        let election_namespace = election.as_ref().map(|election| election.namespace.clone());
        let elector = election
            .map(|election| LeaderElector::with(own_client.clone(), election, time.clone(), &leader_metrics));
        let leadership = elector.as_ref().map(LeaderElector::leadership);
        let client = match &leadership {
            Some(leadership) if options.fences_writes => leadership.fence(&own_client),
            _ => own_client.clone(),
        };
        let (recorder, event_writer) = events::channel(&own_client, events, time.clone(), &event_metrics);
        let health = Arc::new(Checks::default());
        health.add("ping", || Ok(()));
        let factory = SharedInformerFactory::builder(client.clone()).memory(options.memory).build();
        register_informer_metrics(&mut registry, &factory);
        Manager {
            factory,
            client,
            own_client,
            options,
            elector,
            election_namespace,
            leadership,
            runnables: Vec::new(),
            registry,
            metrics,
            recorder,
            event_writer,
            has_recorders: AtomicBool::new(false),
            health,
            readiness: Arc::new(Checks::default()),
            endpoints: watch::Sender::default(),
            time,
        }
    }
}
