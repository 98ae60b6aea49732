//! Metrics under the names that dashboards for Kubernetes controllers already know.
//!
//! | name | kind | meaning |
//! |---|---|---|
//! | `workqueue_depth` | gauge | keys due for work now |
//! | `workqueue_adds_total` | counter | keys that became due for work |
//! | `workqueue_queue_duration_seconds` | histogram | time in line |
//! | `workqueue_work_duration_seconds` | histogram | time from hand-out to finish |
//! | `workqueue_unfinished_work_seconds` | gauge | work in progress, all keys together |
//! | `workqueue_longest_running_processor_seconds` | gauge | work in progress, the longest |
//! | `workqueue_retries_total` | counter | keys asked to be tried again later |
//!
//! Every series carries the label `name`, the name of the queue. Names are unique within a registry:
//! [`QueueMetrics::queue`] rejects a name that another queue uses. The series of a queue are removed when its last handle
//! is dropped, which frees the name.
//!
//! ```
//! use prometheus_client::registry::Registry;
//! use watchkeeper_workqueue::{WorkQueue, prometheus::QueueMetrics};
//!
//! let mut registry = Registry::default();
//! let metrics = QueueMetrics::register(&mut registry);
//! let queue = WorkQueue::builder("pods").metrics(metrics.queue("pods")?).build();
//! queue.add("default/web");
//!
//! let mut text = String::new();
//! prometheus_client::encoding::text::encode(&mut text, &registry)?;
//! assert!(text.contains("workqueue_depth{name=\"pods\"} 1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    collections::{BTreeMap, btree_map::Entry},
    error::Error,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        MetricType,
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::{
    metrics::{Metrics, Running, RunningWork},
    sync::Mutex,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    name: String,
}

/// The queue metrics of one registry. Clones share the registry and its queue names.
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    families: Arc<Families>,
    queues: Arc<RegisteredQueues>,
}

/// The name of a queue is in use by another queue of the same registry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateQueue {
    /// The name that is in use.
    pub name: String,
}

impl fmt::Display for DuplicateQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name } = self;
        write!(
            f,
            "a work queue named {name:?} already reports to this metrics registry, and queues of one name would share \
             their series; choose a unique name"
        )
    }
}

impl Error for DuplicateQueue {}

#[derive(Debug)]
struct Families {
    depth: Family<QueueLabel, Gauge>,
    adds: Family<QueueLabel, Counter>,
    queue_duration: Family<QueueLabel, Histogram, fn() -> Histogram>,
    work_duration: Family<QueueLabel, Histogram, fn() -> Histogram>,
    retries: Family<QueueLabel, Counter>,
}

/// The queues that own their name, each with the work in progress once the queue is built.
///
/// The pointer identifies the owner: a queue that outlives its registration must not remove the series of its successor.
#[derive(Debug)]
struct RegisteredQueues(Mutex<BTreeMap<String, Arc<OnceLock<RunningWork>>>>);

impl QueueMetrics {
    /// Registers the seven metrics. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        let families = Families {
            depth: Family::default(),
            adds: Family::default(),
            queue_duration: Family::new_with_constructor(durations),
            work_duration: Family::new_with_constructor(durations),
            retries: Family::default(),
        };
        registry.register("workqueue_depth", "Keys due for work now", families.depth.clone());
        registry.register("workqueue_adds", "Keys that became due for work", families.adds.clone());
        registry.register(
            "workqueue_queue_duration_seconds",
            "Time a key spent in line before it was handed out",
            families.queue_duration.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Time from a key's hand-out to its finish",
            families.work_duration.clone(),
        );
        registry.register(
            "workqueue_retries",
            "Keys asked to be tried again later",
            families.retries.clone(),
        );
        let queues = Arc::new(RegisteredQueues(Mutex::new(BTreeMap::new())));
        registry.register_collector(Box::new(RunningCollector(Arc::clone(&queues))));
        Self { families: Arc::new(families), queues }
    }

    /// Returns the metrics of one queue, for [`WorkQueueBuilder::metrics`](crate::WorkQueueBuilder::metrics), and creates
    /// their series. The name is taken until the queue or, if none was built, the returned value is dropped.
    ///
    /// # Errors
    /// Returns [`DuplicateQueue`] if another queue of this registry has the name.
    pub fn queue(&self, name: &str) -> Result<Arc<dyn Metrics>, DuplicateQueue> {
        let running = Arc::default();
        match self.queues.0.lock().entry(name.to_owned()) {
            Entry::Occupied(_) => return Err(DuplicateQueue { name: name.to_owned() }),
            Entry::Vacant(vacant) => vacant.insert(Arc::clone(&running)),
        };
        let label = QueueLabel { name: name.to_owned() };
        Ok(Arc::new(OneQueue {
            running,
            depth: self.families.depth.get_or_create_owned(&label),
            adds: self.families.adds.get_or_create_owned(&label),
            queue_duration: self.families.queue_duration.get_or_create_owned(&label),
            work_duration: self.families.work_duration.get_or_create_owned(&label),
            retries: self.families.retries.get_or_create_owned(&label),
            label,
            all: self.clone(),
        }))
    }
}

/// From 10 ns to 1000 s, a bucket for each power of ten: the buckets of Kubernetes' own controllers.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 12))
}

struct OneQueue {
    label: QueueLabel,
    all: QueueMetrics,
    running: Arc<OnceLock<RunningWork>>,
    depth: Gauge,
    adds: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    retries: Counter,
}

impl OneQueue {
    /// Removes the series and frees the name, unless that has been done.
    fn unregister(&self) {
        let mut queues = self.all.queues.0.lock();
        let owner = queues.get(&self.label.name);
        if !owner.is_some_and(|owner| Arc::ptr_eq(owner, &self.running)) {
            return;
        }
        // Under the lock, so that the next queue of this name creates its series afterwards.
        let families = &self.all.families;
        families.depth.remove(&self.label);
        families.adds.remove(&self.label);
        families.queue_duration.remove(&self.label);
        families.work_duration.remove(&self.label);
        families.retries.remove(&self.label);
        queues.remove(&self.label.name);
    }
}

impl Drop for OneQueue {
    fn drop(&mut self) {
        self.unregister();
    }
}

impl Metrics for OneQueue {
    fn attached(&self, running: RunningWork) {
        // Metrics that two queues share are those of the first.
        let _ = self.running.set(running);
    }

    fn added(&self, keys: u64) {
        self.adds.inc_by(keys);
    }

    fn depth(&self, keys: usize) {
        self.depth.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    fn queue_duration(&self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }

    fn work_duration(&self, took: Duration) {
        self.work_duration.observe(took.as_secs_f64());
    }

    fn retried(&self) {
        self.retries.inc();
    }

    fn detached(&self) {
        self.unregister();
    }
}

/// Encodes the two gauges that are known only by asking.
#[derive(Debug)]
struct RunningCollector(Arc<RegisteredQueues>);

impl Collector for RunningCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        type Figure = fn(&Running) -> Duration;
        let gauges: [(&str, &str, Figure); 2] = [
            (
                "workqueue_unfinished_work_seconds",
                "Time spent so far on the keys being processed, all together",
                |running| running.unfinished,
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Time spent so far on the key that has been processed longest",
                |running| running.longest,
            ),
        ];
        // Asking may turn out to hold the last handle of a queue, whose end comes back here: not under the lock.
        let queues: Vec<(String, RunningWork)> = {
            let queues = self.0.0.lock();
            queues.iter().filter_map(|(name, queue)| Some((name.clone(), queue.get()?.clone()))).collect()
        };
        let samples: Vec<(String, Running)> =
            queues.into_iter().filter_map(|(name, queue)| Some((name, queue.sample()?))).collect();
        for (name, help, figure) in gauges {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (queue, running) in &samples {
                let label = QueueLabel { name: queue.clone() };
                let gauge = ConstGauge::<f64>::new(figure(running).as_secs_f64());
                gauge.encode(metric.encode_family(&label)?)?;
            }
        }
        Ok(())
    }
}
