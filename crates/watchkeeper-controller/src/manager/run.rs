//! The run of a manager, from startup to shutdown.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;
use watchkeeper_informer::SharedInformerFactory;

use super::{Endpoints, Manager, ManagerError, Runnable, task_group::TaskGroup};
use crate::{
    http::{Endpoint, Pages, Served},
    leader::{LeadError, LeaderElector, Leadership},
    options::AccessCheck,
    rbac::{self, Access, AccessError},
    time::Time,
};

/// The time limit for writing pending events at shutdown.
const EVENTS_WITHIN: Duration = Duration::from_secs(5);

/// The parts to stop, in stop order.
struct RunningManager {
    leading: TaskGroup,
    election: ElectionTask,
    everywhere: TaskGroup,
    time: Time,
}

/// The participation in leader election.
struct ElectionTask {
    /// The elector before it is started.
    waiting: Option<LeaderElector>,
    task: JoinSet<(LeaderElector, Result<(), LeadError>)>,
    /// The elector after it has ended; it may still hold the lease.
    ended: Option<LeaderElector>,
    /// Stops the election; cancelled after the work has ended.
    stop: CancellationToken,
    /// The time between the end of this replica's leadership and the earliest start of another's.
    margin: Duration,
}

impl Manager {
    /// Runs until `stop` is cancelled, then shuts down.
    ///
    /// # Errors
    /// Returns the same errors as [`run`](Self::run).
    pub async fn run_until(mut self, stop: CancellationToken) -> Result<(), ManagerError> {
        let access = self.access();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let readiness = Arc::clone(&is_stopping);
        self.readiness.add("stopping", move || {
            if readiness.load(Ordering::Relaxed) { Err("the manager is stopping".to_owned()) } else { Ok(()) }
        });
        let prepared: Vec<Arc<AtomicBool>> =
            self.runnables.iter().map(|runnable| self.readiness_of(runnable.name())).collect();

        let (mut http, http_stop) = (JoinSet::new(), CancellationToken::new());
        self.listen(&mut http, &http_stop)?;
        let (mut writing, writer_stop) = (JoinSet::new(), CancellationToken::new());
        let (writer, stop_writing) = (self.event_writer, writer_stop.clone());
        writing.spawn(async move { writer.run(stop_writing).await });

        let mut running = RunningManager {
            leading: TaskGroup::new(),
            election: ElectionTask::new(self.elector.take()),
            everywhere: TaskGroup::new(),
            time: self.time.clone(),
        };
        let startup = Startup {
            factory: self.factory.clone(),
            runnables: self.runnables,
            prepared,
            prepare_within: self.options.prepare_within,
            access_check: self.options.access_check,
            client: self.own_client,
            access,
        };
        let reason = tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            // Boxed because the future is large, and every caller that runs a manager contains it.
            reason = Box::pin(startup.run(&mut running)) => Err(reason),
        };
        if let Err(error) = &reason {
            tracing::error!(%error, "manager failed; stopping");
        }
        is_stopping.store(true, Ordering::Relaxed);
        let ended = Box::pin(running.end(reason.as_ref().err(), self.options.stop_within)).await;

        writer_stop.cancel();
        let all_written = async { while writing.join_next().await.is_some() {} };
        if self.time.within(EVENTS_WITHIN, all_written).await.is_none() {
            tracing::warn!(within = ?EVENTS_WITHIN, "pending events not written in time");
        }
        self.time.within(self.options.stop_within, self.factory.shutdown()).await;
        http_stop.cancel();
        while http.join_next().await.is_some() {}
        reason.and(ended)
    }

    /// Adds a readiness check that fails until the returned flag is set.
    fn readiness_of(&self, name: &str) -> Arc<AtomicBool> {
        let is_prepared = Arc::new(AtomicBool::new(false));
        let check = Arc::clone(&is_prepared);
        self.readiness.add(name, move || {
            if check.load(Ordering::Relaxed) { Ok(()) } else { Err("not prepared yet".to_owned()) }
        });
        is_prepared
    }

    /// Binds the configured addresses and serves them. If one cannot be bound, none is served.
    fn listen(&mut self, http: &mut JoinSet<()>, stop: &CancellationToken) -> Result<(), ManagerError> {
        let pages = Pages {
            health: Arc::clone(&self.health),
            readiness: Arc::clone(&self.readiness),
            registry: Arc::new(std::mem::take(&mut self.registry)),
        };
        let (health, metrics) = (self.options.health_address, self.options.metrics_address);
        let mut bound = Vec::new();
        let mut endpoints = Endpoints::default();
        if let Some(address) = health {
            let has_metrics = metrics == health && address.port() != 0;
            let handler = pages.handler(Served { has_health: true, has_metrics });
            let endpoint = Endpoint::bind("health", address, handler)?;
            endpoints.health = Some(endpoint.address());
            endpoints.metrics = endpoints.health.filter(|_| has_metrics);
            bound.push(endpoint);
        }
        if let Some(address) = metrics.filter(|_| endpoints.metrics.is_none()) {
            let handler = pages.handler(Served { has_health: false, has_metrics: true });
            let endpoint = Endpoint::bind("metrics", address, handler)?;
            endpoints.metrics = Some(endpoint.address());
            bound.push(endpoint);
        }
        for endpoint in bound {
            http.spawn(endpoint.serve(stop.clone()));
        }
        if let Some(address) = endpoints.health {
            tracing::info!(%address, "serving health probes");
        }
        if let Some(address) = endpoints.metrics {
            tracing::info!(%address, "serving metrics");
        }
        self.endpoints.send_replace(endpoints);
        Ok(())
    }
}

/// The startup sequence and the work until a stop is requested.
struct Startup {
    factory: SharedInformerFactory,
    runnables: Vec<Arc<dyn Runnable>>,
    prepared: Vec<Arc<AtomicBool>>,
    prepare_within: Duration,
    access_check: AccessCheck,
    client: watchkeeper_client::Client,
    access: Vec<Access>,
}

impl Startup {
    /// Starts everything in order and waits for the first failure.
    async fn run(self, running: &mut RunningManager) -> ManagerError {
        match self.start(running).await {
            Ok(()) => running.failed().await,
            Err(error) => error,
        }
    }

    async fn start(self, running: &mut RunningManager) -> Result<(), ManagerError> {
        self.check_access().await?;
        // Includes informers that no runnable starts, such as those for the program's own handlers and
        // listers.
        self.factory.start();
        self.prepare(running).await?;
        running.acquire().await?;
        for runnable in self.runnables.into_iter().filter(|runnable| runnable.needs_leadership()) {
            let stop = running.leading.stop.clone();
            let name = runnable.name().to_owned();
            running
                .leading
                .spawn(&name, async move { runnable.run(stop).await.map_err(ManagerError::Failed) });
        }
        Ok(())
    }

    async fn check_access(&self) -> Result<(), ManagerError> {
        if self.access_check == AccessCheck::Off || self.access.is_empty() {
            return Ok(());
        }
        let error = match rbac::missing_access(&self.client, &self.access).await {
            Ok(missing) if missing.is_empty() => return Ok(()),
            Ok(missing) => AccessError::Missing { missing },
            Err(source) => AccessError::Review { source: Box::new(source) },
        };
        if self.access_check == AccessCheck::Fail {
            return Err(error.into());
        }
        tracing::warn!(%error, "declared access not granted; some requests may fail");
        Ok(())
    }

    /// Prepares all runnables concurrently, and runs those that need no leadership as soon as they are
    /// prepared.
    async fn prepare(&self, running: &mut RunningManager) -> Result<(), ManagerError> {
        let mut preparing = Vec::with_capacity(self.runnables.len());
        for (runnable, prepared) in self.runnables.iter().zip(&self.prepared) {
            let (done, is_done) = oneshot::channel::<()>();
            let (runnable, prepared) = (Arc::clone(runnable), Arc::clone(prepared));
            let name = runnable.name().to_owned();
            let needs_leadership = runnable.needs_leadership();
            let group = if needs_leadership { &mut running.leading } else { &mut running.everywhere };
            let stop = group.stop.clone();
            group.spawn(&name, async move {
                runnable.prepare(stop.clone()).await.map_err(ManagerError::Prepare)?;
                prepared.store(true, Ordering::Relaxed);
                // The receiver is gone if the manager is stopping.
                let _ = done.send(());
                if needs_leadership { Ok(()) } else { runnable.run(stop).await.map_err(ManagerError::Failed) }
            });
            preparing.push(async move {
                if is_done.await.is_err() {
                    // The group reports the failure.
                    pending::<()>().await;
                }
            });
        }
        let time = running.time.clone();
        tokio::select! {
            biased;
            error = running.failed() => Err(error),
            _ = join_all(preparing) => Ok(()),
            () = time.sleep(self.prepare_within) => {
                Err(ManagerError::PrepareTimeout { names: self.unprepared(), within: self.prepare_within })
            }
        }
    }

    fn unprepared(&self) -> Vec<String> {
        let all = self.runnables.iter().zip(&self.prepared);
        let open = all.filter(|(_, prepared)| !prepared.load(Ordering::Relaxed));
        open.map(|(runnable, _)| runnable.name().to_owned()).collect()
    }
}

impl RunningManager {
    /// Waits for the first failure of the election or a task.
    async fn failed(&mut self) -> ManagerError {
        tokio::select! {
            biased;
            lost = self.election.lost() => lost,
            error = self.leading.failed() => error,
            error = self.everywhere.failed() => error,
        }
    }

    /// Waits until this replica leads. Returns immediately without leader election.
    async fn acquire(&mut self) -> Result<(), ManagerError> {
        let Some(mut leadership) = self.election.start() else { return Ok(()) };
        tokio::select! {
            biased;
            error = self.failed() => Err(error),
            _ = leadership.acquired() => Ok(()),
        }
    }

    async fn end(&mut self, reason: Option<&ManagerError>, within: Duration) -> Result<(), ManagerError> {
        let has_lost = matches!(reason, Some(ManagerError::LeaseLost(_)));
        // Another replica may start when the lost lease expires, so the time may be shorter than the
        // configured one.
        let for_work = if has_lost { within.min(self.election.margin) } else { within };
        let started = self.time.now();
        let (led, is_over) = self.leading.end(&self.time, for_work).await;
        self.election.end(is_over).await;
        let left = within.saturating_sub(self.time.now().saturating_sub(started));
        let (ended, _) = self.everywhere.end(&self.time, left).await;
        led.and(ended)
    }
}

impl ElectionTask {
    fn new(elector: Option<LeaderElector>) -> Self {
        Self {
            margin: elector.as_ref().map_or(Duration::MAX, LeaderElector::margin),
            waiting: elector,
            task: JoinSet::new(),
            ended: None,
            stop: CancellationToken::new(),
        }
    }

    fn start(&mut self) -> Option<Leadership> {
        let mut elector = self.waiting.take()?;
        let (leadership, stop) = (elector.leadership(), self.stop.clone());
        self.task.spawn(async move {
            let result = elector.run(stop).await;
            (elector, result)
        });
        Some(leadership)
    }

    /// Waits until the election ends early and returns the reason. Never returns if it does not.
    async fn lost(&mut self) -> ManagerError {
        match self.task.join_next().await {
            Some(Ok((elector, Err(lost)))) => {
                self.ended = Some(elector);
                lost.into()
            }
            Some(Err(error)) => TaskGroup::panicked("leader election", error),
            Some(Ok((elector, Ok(())))) => {
                self.ended = Some(elector);
                pending().await
            }
            None => pending().await,
        }
    }

    /// Stops the election, and releases the lease if all work has ended.
    async fn end(&mut self, is_work_over: bool) {
        self.stop.cancel();
        if let Some(Ok((elector, _))) = self.task.join_next().await {
            self.ended = Some(elector);
        }
        if let Some(mut elector) = self.ended.take().filter(|_| is_work_over) {
            elector.release().await;
        }
    }
}
