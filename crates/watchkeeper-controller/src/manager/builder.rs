//! What a manager is made from.

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
    metrics::ControllerMetrics,
    options::ManagerOptions,
    process_metrics,
    rest_metrics::RestMetrics,
    time::Time,
};

/// A manager to be made.
#[derive(Debug)]
#[must_use = "there is no manager until it is built"]
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

    /// How it runs.
    pub fn options(mut self, options: ManagerOptions) -> Self {
        self.options = options;
        self
    }

    /// Works only while leading. Takes an `Option` too, as flags give it.
    pub fn leader_election(mut self, election: impl Into<Option<LeaderElection>>) -> Self {
        self.election = election.into();
        self
    }

    /// How events are recorded.
    pub fn events(mut self, events: EventOptions) -> Self {
        self.events = events;
        self
    }

    /// Other clocks.
    pub fn time(mut self, time: Time) -> Self {
        self.time = time;
        self
    }

    /// A registry with metrics of one's own.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Makes the manager. Nothing runs yet.
    ///
    /// # Panics
    /// Outside a tokio runtime, as [`kube_client::Client::new`] does.
    pub fn build(self) -> Manager {
        let Self { client, options, election, events, time, mut registry } = self;
        process_metrics::register(&mut registry);
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
        Manager {
            factory: SharedInformerFactory::new(client.clone()),
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
