//! A controller with its reconciler, ready to run.

use std::{
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures_util::future::{BoxFuture, try_join_all};
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use watchkeeper_informer::{
    Object, ObjectKey, Spawn,
    handler::Stopped,
    status::{Status, SyncError},
};
use watchkeeper_workqueue::{AddOptions, Cause, Priority, RateLimiter, WorkQueue};

use super::{
    Caches, Reconciler,
    context::ControllerContext,
    controller::ControllerOptions,
    stop::StopTokens,
    worker::{self, WorkerState},
};
use crate::{
    SourceStatus, Triggers,
    manager::{RunError, Runnable},
    metrics::{ControllerMetrics, ControllerSeries, DuplicateName},
    rbac::Access,
    trigger::{Connection, Delivery, InformerSource, Source, Subscription},
    writes::{TrackedCache, WriteTracker},
};

/// A controller with its reconciler, to be run by a manager, as a [`Runnable`], or by the caller.
///
/// [`prepare`](Runnable::prepare) starts the informers, waits for their initial lists and enqueues their
/// keys. [`run`](Runnable::run) reconciles keys until a stop is requested. Queued keys stay queued, so that
/// the loop can be run again. Dropping the loop removes its handlers from the informers.
#[must_use = "a reconcile loop does nothing until it is run"]
pub struct ReconcileLoop<K: Object, R> {
    state: Arc<WorkerState<K, R>>,
    sources: Vec<Arc<dyn Source>>,
    triggers: Vec<Triggers>,
    access: Vec<Access>,
    /// The error of registering the metrics chosen with `Controller::metrics`.
    rejected: Option<DuplicateName>,
    connections: Mutex<Option<Arc<Connections>>>,
    is_running: AtomicBool,
}

/// The connections that feed the queue.
struct Connections {
    sources: Vec<Box<dyn Connection>>,
    _subscriptions: Vec<Subscription>,
}

/// The error reported for a source that can never sync.
#[derive(Debug, thiserror::Error)]
#[error(
    "sync source {name}: {error}; if the controller can run without this source, make its watch optional"
)]
struct SourceError {
    name: String,
    #[source]
    error: SyncError,
}

/// The reason that a run ended before a stop was requested.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    #[error("the controller is already running; run each reconcile loop once at a time")]
    AlreadyRunning,
    #[error("the workers ended unexpectedly; keep their runtime alive until the controller has stopped")]
    WorkersEnded,
}

impl<K: Object, R: Reconciler<K>> ReconcileLoop<K, R> {
    pub(super) fn new(
        reconciler: R,
        primary: &InformerSource<K>,
        sources: Vec<Arc<dyn Source>>,
        triggers: Vec<Triggers>,
        access: Vec<Access>,
        limiter: Box<dyn RateLimiter<ObjectKey>>,
        mut options: ControllerOptions,
    ) -> Self {
        let mut caches = Caches::default();
        for source in &sources {
            source.add_cache(&mut caches);
        }
        let tracked: Vec<_> =
            sources.iter().map(|source| Arc::clone(source) as Arc<dyn TrackedCache>).collect();
        let tracker = Arc::new(WriteTracker::new(tracked, Arc::clone(&options.clock), options.tracking()));
        let queue = WorkQueue::builder(Arc::clone(&options.name))
            .clock(Arc::clone(&options.clock))
            .rate_limiter(limiter)
            .build();
        let registered = options.metrics.take().map(|metrics| register(&metrics, &queue, &options));
        let (metrics, rejected) = match registered {
            None => (None, None),
            Some(Ok(metrics)) => (Some(metrics), None),
            Some(Err(rejected)) => (None, Some(rejected)),
        };
        let context = Arc::new(ControllerContext {
            name: Arc::clone(&options.name),
            client: options.client.take(),
            tracker: Some(Arc::clone(&tracker)),
            clock: Arc::clone(&options.clock),
            caches,
            values: std::mem::take(&mut options.values),
        });
        let state = WorkerState {
            reconciler,
            queue,
            cache: primary.reader().clone(),
            tracker,
            context,
            metrics,
            options,
            kind: primary.kind().to_string(),
            reconciles: AtomicU64::new(0),
        };
        Self {
            state: Arc::new(state),
            sources,
            triggers,
            access,
            rejected,
            connections: Mutex::new(None),
            is_running: AtomicBool::new(false),
        }
    }

    /// Returns the status of the sources, the primary one first.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let status = |source: &Arc<dyn Source>| SourceStatus {
            name: source.name().to_owned(),
            is_optional: source.is_optional(),
            status: source.status(),
        };
        self.sources.iter().map(status).collect()
    }

    /// Returns the number of keys that are due to be reconciled.
    pub fn queued(&self) -> usize {
        self.state.queue.len()
    }

    /// Connects the sources to the queue, if they are not connected.
    fn connect(&self) -> Result<Arc<Connections>, (String, Stopped)> {
        let mut connections = self.connections.lock();
        if let Some(connections) = &*connections {
            return Ok(Arc::clone(connections));
        }
        let connect = |(cache, source): (usize, &Arc<dyn Source>)| {
            let (queue, tracker) = (self.state.queue.clone(), Arc::clone(&self.state.tracker));
            source
                .connect(Delivery { queue, tracker, cache })
                .map_err(|stopped| (source.name().to_owned(), stopped))
        };
        let sources: Result<_, _> = self.sources.iter().enumerate().map(connect).collect();
        let subscriptions =
            self.triggers.iter().map(|triggers| triggers.subscribe(&self.state.queue)).collect();
        let connected = Arc::new(Connections { sources: sources?, _subscriptions: subscriptions });
        *connections = Some(Arc::clone(&connected));
        Ok(connected)
    }

    async fn sync_sources(&self) -> Result<(), SourceError> {
        let connections =
            self.connect().map_err(|(name, _)| SourceError { name, error: SyncError::Stopped })?;
        self.sources.iter().for_each(|source| source.start());
        let waits = self.sources.iter().zip(&connections.sources).map(|(source, connection)| async move {
            if source.is_optional() {
                if let Err(status) = connection.settled().await {
                    self.log_unavailable(source.name(), &status);
                }
                return Ok(());
            }
            let ready = connection.ready().await;
            ready.map_err(|error| SourceError { name: source.name().to_owned(), error })
        });
        try_join_all(waits).await.map(drop)
    }

    fn log_unavailable(&self, source: &str, status: &Status) {
        let message = match status {
            Status::Failing { message, .. } | Status::Parked { message, .. } => message,
            _ => "",
        };
        let status = status.label();
        warn!(
            controller = self.name(),
            source, status, message, "optional source not available; starting without it"
        );
    }

    /// Enqueues every key of the cache periodically.
    async fn resync(&self) {
        let WorkerState { queue, cache, options, .. } = &*self.state;
        let Some(period) = options.resync_period else { return pending().await };
        let mut next = options.clock.now();
        loop {
            // Scheduled by the clock instead of by the end of the last resync, so that the period does not
            // drift and resyncs do not pile up.
            next = next.saturating_add(period).max(options.clock.now());
            options.clock.sleep_until(next).await;
            for key in cache.keys() {
                queue.add_with(key, AddOptions::new().priority(Priority::LOW).cause(Cause::Resync));
            }
        }
    }

    async fn work(&self, stop: CancellationToken) -> Result<(), WorkError> {
        let state = &self.state;
        let tokens = Arc::new(StopTokens::new(stop.child_token()));
        let _watch = tokens.watch_stop();
        // Dropping this future ends the workers too.
        let _guards = (tokens.stop.clone().drop_guard(), tokens.abort.clone().drop_guard());
        let (alive, mut all_ended) = mpsc::channel::<()>(1);
        let spawn: Arc<dyn Spawn> =
            state.options.spawn.clone().unwrap_or_else(|| Arc::new(Handle::current()));
        for _ in 0..state.options.workers {
            let (state, tokens, alive) = (Arc::clone(state), Arc::clone(&tokens), alive.clone());
            spawn.spawn(Box::pin(async move {
                worker::work(&state, &tokens).await;
                // Dropped last, so that completion implies that the worker has released everything.
                drop((state, tokens, alive));
            }));
        }
        drop(alive);
        tokio::select! {
            biased;
            () = tokens.stop.cancelled() => {}
            _ = all_ended.recv() => return Err(WorkError::WorkersEnded),
            () = self.resync() => {}
        }
        let clock = &state.options.clock;
        let deadline = clock.sleep_until(clock.now().saturating_add(state.options.stop_within));
        tokio::select! {
            biased;
            _ = all_ended.recv() => {}
            () = deadline => {
                warn!(
                    controller = self.name(),
                    unfinished = state.queue.processing_len(),
                    "stop timeout elapsed; dropping running reconciles"
                );
                tokens.abort.cancel();
                all_ended.recv().await;
            }
        }
        Ok(())
    }
}

/// Creates the metric series of a controller and its queue.
fn register(
    metrics: &ControllerMetrics,
    queue: &WorkQueue<ObjectKey>,
    options: &ControllerOptions,
) -> Result<ControllerSeries, DuplicateName> {
    let metrics = metrics.controller(queue)?;
    metrics.workers(options.workers);
    Ok(metrics)
}

impl<K: Object, R: Reconciler<K>> Runnable for ReconcileLoop<K, R> {
    fn name(&self) -> &str {
        &self.state.options.name
    }

    fn needs_leadership(&self) -> bool {
        self.state.options.needs_leadership
    }

    fn access(&self) -> Vec<Access> {
        self.access.clone()
    }

    /// Registers the metrics of the controller and its queue, unless [`Controller::metrics`](crate::Controller::metrics) has set
    /// others.
    fn register_metrics(&mut self, metrics: &ControllerMetrics) -> Result<(), DuplicateName> {
        if let Some(rejected) = &self.rejected {
            return Err(rejected.clone());
        }
        let Some(state) = Arc::get_mut(&mut self.state) else {
            warn!(
                controller = self.name(),
                "workers of an earlier run are still active; metrics not registered"
            );
            return Ok(());
        };
        if state.metrics.is_none() {
            state.metrics = Some(register(metrics, &state.queue, &state.options)?);
        }
        Ok(())
    }

    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            if let Some(rejected) = &self.rejected {
                return Err(rejected.clone().into());
            }
            let ready = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                ready = self.sync_sources() => ready,
            };
            ready.map_err(|source| RunError::Prepare {
                name: self.name().to_owned(),
                source: Box::new(source),
            })
        })
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            let failed =
                |source: WorkError| RunError::Run { name: self.name().to_owned(), source: Box::new(source) };
            let _running =
                RunGuard::claim(&self.is_running).ok_or(WorkError::AlreadyRunning).map_err(failed)?;
            self.prepare(stop.clone()).await?;
            debug!(controller = self.name(), workers = self.state.options.workers, "controller running");
            let ended = self.work(stop).await.map_err(failed);
            debug!(controller = self.name(), "controller stopped");
            ended
        })
    }
}

/// A guard that prevents a second concurrent run of a loop.
struct RunGuard<'a>(&'a AtomicBool);

impl<'a> RunGuard<'a> {
    fn claim(is_running: &'a AtomicBool) -> Option<Self> {
        let was_running = is_running.swap(true, Ordering::AcqRel);
        (!was_running).then_some(Self(is_running))
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<K: Object, R: Reconciler<K>> fmt::Debug for ReconcileLoop<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileLoop")
            .field("name", &self.name())
            .field("sources", &self.sources())
            .field("queue", &self.state.queue)
            .field("is_running", &self.is_running)
            .finish_non_exhaustive()
    }
}
