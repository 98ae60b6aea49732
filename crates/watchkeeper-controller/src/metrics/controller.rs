//! Metrics of controllers and their work queues.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use watchkeeper_informer::ObjectKey;
use watchkeeper_workqueue::{WorkQueue, prometheus::QueueMetrics};

use super::register;
use crate::{ErrorClass, Freshness, reconcile::Outcome};

/// The controller and work queue metrics of one registry, as listed in the [module documentation](super).
///
/// ```
/// use prometheus_client::registry::Registry;
/// use watchkeeper_controller::metrics::ControllerMetrics;
///
/// let mut registry = Registry::default();
/// let metrics = ControllerMetrics::register(&mut registry); // then: controller.metrics(&metrics)
/// # let _ = metrics;
/// ```
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    families: Arc<Families>,
    queues: QueueMetrics,
}

/// The error returned when the name of a controller or runnable is already in use in the same manager or metrics registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name {name:?} is already in use by another controller or runnable of this manager or metrics registry: both would \
     share their metric series and readiness check; choose a unique name, for a controller with Controller::named"
)]
#[non_exhaustive]
pub struct DuplicateName {
    /// The name that is in use.
    pub name: String,
}

impl DuplicateName {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    controller: String,
    result: &'static str,
}

const SUCCESS: &str = "success";
const ERROR: &str = "error";
const REQUEUE: &str = "requeue";
const REQUEUE_AFTER: &str = "requeue_after";
const REACHED: &str = "reached";
const TIMEOUT: &str = "timeout";

type Durations = Family<ControllerLabel, Histogram, fn() -> Histogram>;

#[derive(Debug)]
struct Families {
    reconciles: Family<ResultLabel, Counter>,
    errors: Family<ControllerLabel, Counter>,
    terminal_errors: Family<ControllerLabel, Counter>,
    panics: Family<ControllerLabel, Counter>,
    timeouts: Family<ControllerLabel, Counter>,
    time: Durations,
    max_concurrent: Family<ControllerLabel, Gauge>,
    active_workers: Family<ControllerLabel, Gauge>,
    conflicts: Family<ControllerLabel, Counter>,
    given_up: Family<ControllerLabel, Counter>,
    freshness_waits: Family<ResultLabel, Counter>,
    freshness_time: Durations,
    hot_loops: Family<ControllerLabel, Counter>,
}

impl ControllerMetrics {
    /// Registers the metrics of controllers and their work queues. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        let runtime = registry.sub_registry_with_prefix("controller_runtime");
        let reconciles = register(runtime, "reconcile", "Reconciles, by result", Family::default());
        let errors = register(runtime, "reconcile_errors", "Reconciles that failed", Family::default());
        let terminal_errors = register(
            runtime,
            "terminal_reconcile_errors",
            "Failed reconciles that are not retried",
            Family::default(),
        );
        let panics = register(runtime, "reconcile_panics", "Reconciles that panicked", Family::default());
        let timeouts =
            register(runtime, "reconcile_timeouts", "Reconciles that timed out", Family::default());
        let durations = || Durations::new_with_constructor(reconcile_buckets);
        let time = register(runtime, "reconcile_time_seconds", "Duration of a reconcile", durations());
        let max_concurrent = register(runtime, "max_concurrent_reconciles", "Workers", Family::default());
        let active_workers =
            register(runtime, "active_workers", "Workers that are reconciling", Family::default());
        let own = registry.sub_registry_with_prefix("watchkeeper");
        let conflicts = register(
            own,
            "reconcile_conflicts",
            "Reconciles that conflicted because of a stale state and are retried",
            Family::default(),
        );
        let given_up =
            register(own, "reconcile_given_up", "Keys that exhausted their retries", Family::default());
        let freshness_waits = register(
            own,
            "freshness_waits",
            "Keys that waited for their own writes to be observed",
            Family::default(),
        );
        let freshness_time = register(
            own,
            "freshness_wait_seconds",
            "Time that keys waited for their own writes to be observed",
            durations(),
        );
        let hot_loops = register(own, "hot_loops", "Keys found to trigger themselves", Family::default());
        let families = Families {
            reconciles,
            errors,
            terminal_errors,
            panics,
            timeouts,
            time,
            max_concurrent,
            active_workers,
            conflicts,
            given_up,
            freshness_waits,
            freshness_time,
            hot_loops,
        };
        Self { families: Arc::new(families), queues: QueueMetrics::register(registry) }
    }

    /// Creates the series of one controller and of its work queue.
    ///
    /// # Errors
    /// Returns [`DuplicateName`] if another controller of this registry has the same name.
    pub(crate) fn controller(&self, queue: &WorkQueue<ObjectKey>) -> Result<ControllerSeries, DuplicateName> {
        // The queue has the name of the controller, so its registration guards both.
        let controller = queue.name();
        self.queues.add_queue(queue).map_err(|_| DuplicateName::new(controller))?;
        let label = ControllerLabel { controller: controller.to_owned() };
        let families = &self.families;
        let reconciles = |result| families.reconciles.get_or_create_owned(&label.with(result));
        let waits = |result| families.freshness_waits.get_or_create_owned(&label.with(result));
        Ok(ControllerSeries {
            success: reconciles(SUCCESS),
            error: reconciles(ERROR),
            requeue: reconciles(REQUEUE),
            requeue_after: reconciles(REQUEUE_AFTER),
            errors: families.errors.get_or_create_owned(&label),
            terminal_errors: families.terminal_errors.get_or_create_owned(&label),
            panics: families.panics.get_or_create_owned(&label),
            timeouts: families.timeouts.get_or_create_owned(&label),
            time: families.time.get_or_create_owned(&label),
            max_concurrent: families.max_concurrent.get_or_create_owned(&label),
            active_workers: families.active_workers.get_or_create_owned(&label),
            conflicts: families.conflicts.get_or_create_owned(&label),
            given_up: families.given_up.get_or_create_owned(&label),
            reached: waits(REACHED),
            timed_out: waits(TIMEOUT),
            freshness_time: families.freshness_time.get_or_create_owned(&label),
            hot_loops: families.hot_loops.get_or_create_owned(&label),
            _registration: SeriesRegistration {
                families: Arc::clone(families),
                label,
                queues: self.queues.clone(),
                queue: queue.clone(),
            },
        })
    }
}

impl ControllerLabel {
    fn with(&self, result: &'static str) -> ResultLabel {
        ResultLabel { controller: self.controller.clone(), result }
    }
}

impl Families {
    /// Removes the series of one controller.
    fn remove(&self, label: &ControllerLabel) {
        for result in [SUCCESS, ERROR, REQUEUE, REQUEUE_AFTER] {
            self.reconciles.remove(&label.with(result));
        }
        for result in [REACHED, TIMEOUT] {
            self.freshness_waits.remove(&label.with(result));
        }
        let counters = [
            &self.errors,
            &self.terminal_errors,
            &self.panics,
            &self.timeouts,
            &self.conflicts,
            &self.given_up,
            &self.hot_loops,
        ];
        for family in counters {
            family.remove(label);
        }
        for family in [&self.max_concurrent, &self.active_workers] {
            family.remove(label);
        }
        for family in [&self.time, &self.freshness_time] {
            family.remove(label);
        }
    }
}

/// Returns a histogram with controller-runtime's buckets for the duration of a reconcile.
fn reconcile_buckets() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
        1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0,
        40.0, 50.0, 60.0,
    ])
}

/// The metrics of one controller. Dropping the value removes the series and frees the name of the controller.
pub(crate) struct ControllerSeries {
    _registration: SeriesRegistration,
    success: Counter,
    error: Counter,
    requeue: Counter,
    requeue_after: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    timeouts: Counter,
    time: Histogram,
    max_concurrent: Gauge,
    active_workers: Gauge,
    conflicts: Counter,
    given_up: Counter,
    reached: Counter,
    timed_out: Counter,
    freshness_time: Histogram,
    hot_loops: Counter,
}

/// The ownership of a controller's name and series in a registry.
struct SeriesRegistration {
    families: Arc<Families>,
    label: ControllerLabel,
    queues: QueueMetrics,
    queue: WorkQueue<ObjectKey>,
}

impl Drop for SeriesRegistration {
    fn drop(&mut self) {
        self.families.remove(&self.label);
        // Frees the name, so it comes last: the next controller of this name creates its series afterwards. Called here because
        // handlers that are still being removed may keep the queue alive for a moment longer.
        self.queues.remove_queue(&self.queue);
    }
}

/// A guard that counts a worker as active until it is dropped.
pub(crate) struct ActiveWorker<'a>(&'a Gauge);

impl Drop for ActiveWorker<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl ControllerSeries {
    pub(crate) fn workers(&self, workers: usize) {
        self.max_concurrent.set(i64::try_from(workers).unwrap_or(i64::MAX));
    }

    pub(crate) fn start_work(&self) -> ActiveWorker<'_> {
        self.active_workers.inc();
        ActiveWorker(&self.active_workers)
    }

    pub(crate) fn waited(&self, freshness: Freshness) {
        let (counter, waited) = match freshness {
            Freshness::Fresh => return,
            Freshness::Waited(waited) => (&self.reached, waited),
            Freshness::TimedOut(waited) => (&self.timed_out, waited),
        };
        counter.inc();
        self.freshness_time.observe(waited.as_secs_f64());
    }

    pub(crate) fn reconciled(&self, outcome: Outcome, took: Duration) {
        self.time.observe(took.as_secs_f64());
        let specific = match outcome {
            Outcome::Succeeded(action) if action.requeue().is_some() => {
                self.requeue_after.inc();
                return;
            }
            Outcome::Succeeded(_) => {
                self.success.inc();
                return;
            }
            Outcome::Failed(ErrorClass::Conflict) => {
                self.requeue.inc();
                self.conflicts.inc();
                return;
            }
            // A cancelled reconcile neither succeeded nor failed.
            Outcome::Cancelled => return,
            Outcome::Failed(ErrorClass::Retry) => None,
            Outcome::Failed(ErrorClass::Terminal) => Some(&self.terminal_errors),
            Outcome::Panicked => Some(&self.panics),
            Outcome::TimedOut => Some(&self.timeouts),
        };
        self.error.inc();
        self.errors.inc();
        specific.map(Counter::inc);
    }

    pub(crate) fn retries_exhausted(&self) {
        self.given_up.inc();
    }

    pub(crate) fn hot_loop(&self) {
        self.hot_loops.inc();
    }
}
