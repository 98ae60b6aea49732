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
    CacheReader, Object, ObjectKey, Spawn,
    handler::Stopped,
    status::{Status, SyncError},
};
use watchkeeper_workqueue::{AddOptions, Cause, Priority, RateLimiter, WorkQueue};

use super::{Part, options::Options, worker};
use crate::{
    Reconciler,
    access::Access,
    context::{self, Caches, Signals},
    memory::Memory,
    metrics::{ControllerMetrics, DuplicateName, OneController},
    runnable::{RunError, Runnable},
    source::{Connection, Feed, InformerSource, Source, SourceStatus},
    triggers::{Connected, Triggers},
};

/// A controller with its reconciler, to be run by a manager, as a [`Runnable`], or by the caller.
///
/// [`prepare`](Runnable::prepare) starts the informers, waits for their initial lists and enqueues their
/// keys. [`run`](Runnable::run) reconciles keys until a stop is requested. Queued keys stay queued, so that
/// the loop can be run again. Dropping the loop removes its handlers from the informers.
#[must_use = "it does nothing until it is run"]
pub struct ReconcileLoop<K: Object, R> {
    shared: Arc<Shared<K, R>>,
    sources: Vec<Arc<dyn Source>>,
    triggers: Vec<Triggers>,
    access: Vec<Access>,
    /// The error of registering the metrics chosen with `Controller::metrics`.
    rejected: Option<DuplicateName>,
    connections: Mutex<Option<Arc<Connections>>>,
    is_running: AtomicBool,
}

/// State shared by the workers.
pub(super) struct Shared<K: Object, R> {
    pub(super) reconciler: R,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) cache: CacheReader<K>,
    pub(super) memory: Arc<Memory>,
    pub(super) context: Arc<context::Shared>,
    pub(super) metrics: Option<OneController>,
    pub(super) options: Options,
    pub(super) kind: String,
    pub(super) reconciles: AtomicU64,
}

/// The connections that feed the queue.
struct Connections {
    sources: Vec<Box<dyn Connection>>,
    _triggers: Vec<Connected>,
}

/// A source that can never sync.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {error}; if the controller can run without it, watch it as optional")]
struct NotReady {
    name: String,
    #[source]
    error: SyncError,
}

#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("the controller is already running")]
    RunsAlready,
    #[error("the workers ended unexpectedly; was their runtime shut down?")]
    WorkersGone,
}

impl<K: Object, R: Reconciler<K>> ReconcileLoop<K, R> {
    pub(super) fn new(
        reconciler: R,
        primary: &InformerSource<K>,
        parts: Vec<Part>,
        triggers: Vec<Triggers>,
        access: Vec<Access>,
        limiter: Box<dyn RateLimiter<ObjectKey>>,
        mut options: Options,
    ) -> Self {
        let mut caches = Caches::default();
        for part in &parts {
            part.source.add_cache(&mut caches);
        }
        let (sources, followed): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|part| (part.source, part.cache)).unzip();
        let memory = Arc::new(Memory::new(followed, Arc::clone(&options.clock), options.memory()));
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
        let context = Arc::new(context::Shared {
            controller: Arc::clone(&options.name),
            client: options.client.take(),
            memory: Some(Arc::clone(&memory)),
            clock: Arc::clone(&options.clock),
            caches,
            values: std::mem::take(&mut options.values),
        });
        let shared = Shared {
            reconciler,
            queue,
            cache: primary.reader().clone(),
            memory,
            context,
            metrics,
            options,
            kind: primary.kind().to_string(),
            reconciles: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
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
        self.shared.queue.len()
    }

    /// Connects the sources to the queue, if they are not connected.
    fn connect(&self) -> Result<Arc<Connections>, (String, Stopped)> {
        let mut connections = self.connections.lock();
        if let Some(connections) = &*connections {
            return Ok(Arc::clone(connections));
        }
        let connect = |(cache, source): (usize, &Arc<dyn Source>)| {
            let feed =
                Feed { queue: self.shared.queue.clone(), memory: Arc::clone(&self.shared.memory), cache };
            source.connect(feed).map_err(|stopped| (source.name().to_owned(), stopped))
        };
        let sources: Result<_, _> = self.sources.iter().enumerate().map(connect).collect();
        let triggers = self.triggers.iter().map(|triggers| triggers.connect(&self.shared.queue)).collect();
        let made = Arc::new(Connections { sources: sources?, _triggers: triggers });
        *connections = Some(Arc::clone(&made));
        Ok(made)
    }

    async fn get_ready(&self) -> Result<(), NotReady> {
        let connections = self.connect().map_err(|(name, _)| NotReady { name, error: SyncError::Stopped })?;
        self.sources.iter().for_each(|source| source.start());
        let waits = self.sources.iter().zip(&connections.sources).map(|(source, connection)| async move {
            if source.is_optional() {
                if let Err(status) = connection.settled().await {
                    self.tell_absence(source.name(), &status);
                }
                return Ok(());
            }
            let ready = connection.ready().await;
            ready.map_err(|error| NotReady { name: source.name().to_owned(), error })
        });
        try_join_all(waits).await.map(drop)
    }

    fn tell_absence(&self, source: &str, status: &Status) {
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
        let Shared { queue, cache, options, .. } = &*self.shared;
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

    async fn work(&self, stop: CancellationToken) -> Result<(), Ended> {
        let shared = &self.shared;
        let signals = Arc::new(Signals::new(stop.child_token()));
        let _watched = signals.watch_stop();
        // Dropping this future ends the workers too.
        let _ending = (signals.stop.clone().drop_guard(), signals.abort.clone().drop_guard());
        let (alive, mut all_ended) = mpsc::channel::<()>(1);
        let spawn: Arc<dyn Spawn> =
            shared.options.spawn.clone().unwrap_or_else(|| Arc::new(Handle::current()));
        for _ in 0..shared.options.workers {
            let (shared, signals, alive) = (Arc::clone(shared), Arc::clone(&signals), alive.clone());
            spawn.spawn(Box::pin(async move {
                worker::work(&shared, &signals).await;
                // Dropped last, so that completion implies that the worker has released everything.
                drop((shared, signals, alive));
            }));
        }
        drop(alive);
        tokio::select! {
            biased;
            () = signals.stop.cancelled() => {}
            _ = all_ended.recv() => return Err(Ended::WorkersGone),
            () = self.resync() => {}
        }
        let clock = &shared.options.clock;
        let deadline = clock.sleep_until(clock.now().saturating_add(shared.options.stop_within));
        tokio::select! {
            biased;
            _ = all_ended.recv() => {}
            () = deadline => {
                warn!(
                    controller = self.name(),
                    unfinished = shared.queue.processing_len(),
                    "stop timeout elapsed; dropping running reconciles"
                );
                signals.abort.cancel();
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
    options: &Options,
) -> Result<OneController, DuplicateName> {
    let metrics = metrics.controller(queue)?;
    metrics.workers(options.workers);
    Ok(metrics)
}

impl<K: Object, R: Reconciler<K>> Runnable for ReconcileLoop<K, R> {
    fn name(&self) -> &str {
        &self.shared.options.name
    }

    fn needs_leadership(&self) -> bool {
        self.shared.options.needs_leadership
    }

    fn access(&self) -> Vec<Access> {
        self.access.clone()
    }

    /// Registers the metrics of the controller and its queue, unless [`Controller::metrics`](crate::Controller::metrics) chose others.
    fn register_metrics(&mut self, metrics: &ControllerMetrics) -> Result<(), DuplicateName> {
        if let Some(rejected) = &self.rejected {
            return Err(rejected.clone());
        }
        let Some(shared) = Arc::get_mut(&mut self.shared) else {
            warn!(
                controller = self.name(),
                "workers of an earlier run are still active; metrics not registered"
            );
            return Ok(());
        };
        if shared.metrics.is_none() {
            shared.metrics = Some(register(metrics, &shared.queue, &shared.options)?);
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
                ready = self.get_ready() => ready,
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
                |source: Ended| RunError::Run { name: self.name().to_owned(), source: Box::new(source) };
            let _running = Running::claim(&self.is_running).ok_or(Ended::RunsAlready).map_err(failed)?;
            self.prepare(stop.clone()).await?;
            debug!(controller = self.name(), workers = self.shared.options.workers, "controller running");
            let ended = self.work(stop).await.map_err(failed);
            debug!(controller = self.name(), "controller stopped");
            ended
        })
    }
}

/// A guard against running a loop twice concurrently.
struct Running<'a>(&'a AtomicBool);

impl<'a> Running<'a> {
    fn claim(is_running: &'a AtomicBool) -> Option<Self> {
        let was_running = is_running.swap(true, Ordering::AcqRel);
        (!was_running).then_some(Self(is_running))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<K: Object, R: Reconciler<K>> fmt::Debug for ReconcileLoop<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileLoop")
            .field("name", &self.name())
            .field("sources", &self.sources())
            .field("queue", &self.shared.queue)
            .field("is_running", &self.is_running)
            .finish_non_exhaustive()
    }
}
