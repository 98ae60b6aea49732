//! From the first endpoint to the last.

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

use super::{Endpoints, Manager, ManagerError, group::Group};
use crate::{
    access::Access,
    http::{Endpoint, Pages, Served},
    leader::{LeadError, LeaderElector, Leadership},
    options::AccessCheck,
    rbac::{self, AccessError},
    runnable::Runnable,
    time::Time,
};

/// How long events that wait may take to be written at the end.
const EVENTS_WITHIN: Duration = Duration::from_secs(5);

/// What is to be ended, in the order in which it is.
struct Running {
    leading: Group,
    election: Election,
    everywhere: Group,
    time: Time,
}

/// The lease, being tried for or held.
struct Election {
    /// Not started yet.
    waiting: Option<LeaderElector>,
    task: JoinSet<(LeaderElector, Result<(), LeadError>)>,
    /// It ended, and may still hold the lease.
    ended: Option<LeaderElector>,
    /// Ends it; the work has ended.
    stop: CancellationToken,
    /// Between when work is to stop and when another replica may start.
    margin: Duration,
}

impl Manager {
    /// Runs until `stop` is cancelled, then ends everything.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until(mut self, stop: CancellationToken) -> Result<(), ManagerError> {
        let access = self.access();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let readiness = Arc::clone(&is_stopping);
        self.readiness.add("stopping", move || {
            if readiness.load(Ordering::Relaxed) { Err("it is stopping".to_owned()) } else { Ok(()) }
        });
        let prepared: Vec<Arc<AtomicBool>> =
            self.runnables.iter().map(|runnable| self.readiness_of(runnable.name())).collect();

        let (mut http, http_stop) = (JoinSet::new(), CancellationToken::new());
        self.listen(&mut http, &http_stop)?;
        let (mut writing, writer_stop) = (JoinSet::new(), CancellationToken::new());
        let (writer, stop_writing) = (self.event_writer, writer_stop.clone());
        writing.spawn(async move { writer.run(stop_writing).await });

        let mut running = Running {
            leading: Group::new(),
            election: Election::new(self.elector.take()),
            everywhere: Group::new(),
            time: self.time.clone(),
        };
        let work = Work {
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
            // Large, and held by everything that runs a manager.
            reason = Box::pin(work.run(&mut running)) => Err(reason),
        };
        if let Err(error) = &reason {
            tracing::error!(%error, "ending");
        }
        is_stopping.store(true, Ordering::Relaxed);
        let ended = Box::pin(running.end(reason.as_ref().err(), self.options.stop_within)).await;

        writer_stop.cancel();
        let all_written = async { while writing.join_next().await.is_some() {} };
        if self.time.within(EVENTS_WITHIN, all_written).await.is_none() {
            tracing::warn!("events that waited were not written in time");
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

    /// Binds the addresses of the options and serves them. Serves none if one cannot be bound.
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

/// What is to be done while nobody asks to stop.
struct Work {
    factory: SharedInformerFactory,
    runnables: Vec<Arc<dyn Runnable>>,
    prepared: Vec<Arc<AtomicBool>>,
    prepare_within: Duration,
    access_check: AccessCheck,
    client: watchkeeper_client::Client,
    access: Vec<Access>,
}

impl Work {
    /// Starts everything in order, and returns the first reason to end.
    async fn run(self, running: &mut Running) -> ManagerError {
        match self.start(running).await {
            Ok(()) => running.failed().await,
            Err(error) => error,
        }
    }

    async fn start(self, running: &mut Running) -> Result<(), ManagerError> {
        self.check_access().await?;
        // Also those that no runnable starts: a handler or a lister of the program's own.
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
        let error = match rbac::missing(&self.client, &self.access).await {
            Ok(missing) if missing.is_empty() => return Ok(()),
            Ok(missing) => AccessError::Missing { missing },
            Err(source) => AccessError::Review { source: Box::new(source) },
        };
        if self.access_check == AccessCheck::Fail {
            return Err(error.into());
        }
        tracing::warn!(%error, "some of what is declared may fail");
        Ok(())
    }

    /// Prepares everything at once, and runs what needs no leadership as soon as it is prepared.
    async fn prepare(&self, running: &mut Running) -> Result<(), ManagerError> {
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
                // Nobody waits any more when the manager is ending.
                let _ = done.send(());
                if needs_leadership { Ok(()) } else { runnable.run(stop).await.map_err(ManagerError::Failed) }
            });
            preparing.push(async move {
                if is_done.await.is_err() {
                    // It failed, which is told where it runs.
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

impl Running {
    /// The first failure of anything that runs.
    async fn failed(&mut self) -> ManagerError {
        tokio::select! {
            biased;
            lost = self.election.lost() => lost,
            error = self.leading.failed() => error,
            error = self.everywhere.failed() => error,
        }
    }

    /// Waits to lead. At once without an election.
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
        // Another replica may start when the lease runs out, so there may be less time than is usual.
        let for_work = if has_lost { within.min(self.election.margin) } else { within };
        let started = self.time.now();
        let (led, is_over) = self.leading.end(&self.time, for_work).await;
        self.election.end(is_over).await;
        let left = within.saturating_sub(self.time.now().saturating_sub(started));
        let (ended, _) = self.everywhere.end(&self.time, left).await;
        led.and(ended)
    }
}

impl Election {
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

    /// Why it ended before it was asked to. Never if it does not.
    async fn lost(&mut self) -> ManagerError {
        match self.task.join_next().await {
            Some(Ok((elector, Err(lost)))) => {
                self.ended = Some(elector);
                lost.into()
            }
            Some(Err(error)) => Group::panicked("leader election", error),
            Some(Ok((elector, Ok(())))) => {
                self.ended = Some(elector);
                pending().await
            }
            None => pending().await,
        }
    }

    /// Ends it, and lets the lease go if all work has ended.
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
