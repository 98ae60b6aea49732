//! Managers against an embedded server.

mod endpoints;
mod informer_metrics;
mod lifecycle;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Method;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube_core::params::{Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::kube_client::Api;
use watchkeeper_client::{Client, config::ClientConfig};
use watchkeeper_controller::{
    Action, Context, Controller, ReconcileError, Request,
    http::EndpointError,
    leader::{LeaderElection, Leadership},
    manager::{Manager, ManagerError, RunError, Runnable},
    metrics::RestMetrics,
    options::{AccessCheck, ManagerOptions},
    rbac::{Access, AccessError, Verb},
    time::Time,
};
use watchkeeper_informer::{SharedIndexInformer, event::Event};

use crate::{
    faults::{Fate, Faults},
    support::token_client,
};

const SECOND: Duration = Duration::from_secs(1);

/// The events of a test, in order.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<String>>>);

impl EventLog {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn index_of(&self, what: &str) -> usize {
        let lines = self.lines();
        lines.iter().position(|line| line == what).unwrap_or_else(|| panic!("{what} is not in {lines:?}"))
    }
}

type Step = Box<dyn Fn(CancellationToken) -> BoxFuture<'static, Result<(), RunError>> + Send + Sync>;

/// A runnable that logs its lifecycle.
struct LoggedRunnable {
    name: &'static str,
    log: EventLog,
    needs_leadership: bool,
    access: Vec<Access>,
    prepare: Step,
    run: Step,
}

impl LoggedRunnable {
    fn new(name: &'static str, log: &EventLog) -> Self {
        let until_stopped: Step = Box::new(|stop| {
            Box::pin(async move {
                stop.cancelled().await;
                Ok(())
            })
        });
        Self {
            name,
            log: log.clone(),
            needs_leadership: true,
            access: Vec::new(),
            prepare: Box::new(|_| Box::pin(async { Ok(()) })),
            run: until_stopped,
        }
    }

    fn everywhere(mut self) -> Self {
        self.needs_leadership = false;
        self
    }

    fn access(mut self, access: impl IntoIterator<Item = Access>) -> Self {
        self.access = access.into_iter().collect();
        self
    }

    fn preparing<F>(mut self, prepare: impl Fn(CancellationToken) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), RunError>> + Send + 'static,
    {
        self.prepare = Box::new(move |stop| Box::pin(prepare(stop)));
        self
    }

    fn running<F>(mut self, run: impl Fn(CancellationToken) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), RunError>> + Send + 'static,
    {
        self.run = Box::new(move |stop| Box::pin(run(stop)));
        self
    }
}

impl Runnable for LoggedRunnable {
    fn name(&self) -> &str {
        self.name
    }

    fn needs_leadership(&self) -> bool {
        self.needs_leadership
    }

    fn access(&self) -> Vec<Access> {
        self.access.clone()
    }

    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            self.log.add(format!("{} prepares", self.name));
            (self.prepare)(stop).await?;
            self.log.add(format!("{} is prepared", self.name));
            Ok(())
        })
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            self.log.add(format!("{} runs", self.name));
            let result = (self.run)(stop).await;
            self.log.add(format!("{} has ended", self.name));
            result
        })
    }
}

fn failure(name: &str) -> RunError {
    RunError::Run { name: name.to_owned(), source: "disk full".into() }
}

fn time() -> Time {
    Time::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

fn election(identity: &str) -> LeaderElection {
    LeaderElection::new("default", "lock.example.com").identity(identity)
}

fn quiet() -> ManagerOptions {
    let mut options = ManagerOptions::default();
    options.access_check = AccessCheck::Off;
    options
}

/// A manager that runs in a task.
struct Running {
    leadership: Option<Leadership>,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), ManagerError>>,
}

impl Running {
    fn start(manager: Manager) -> Self {
        let (leadership, stop) = (manager.leadership(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(manager.run_until(stop.clone()));
        Self { leadership, stop, tasks }
    }

    async fn leads(&mut self) {
        assert!(self.leadership.as_mut().expect("leader election is enabled").acquired().await);
    }

    async fn end(&mut self) -> Result<(), ManagerError> {
        self.stop.cancel();
        self.ended().await
    }

    async fn ended(&mut self) -> Result<(), ManagerError> {
        self.tasks.join_next().await.expect("started").expect("no panic")
    }
}

fn manager(client: impl Into<Client>, identity: &str) -> Manager {
    Manager::builder(client).time(time()).options(quiet()).leader_election(election(identity)).build()
}
