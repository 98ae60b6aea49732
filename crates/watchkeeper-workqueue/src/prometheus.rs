//! Prometheus metrics, with the names and labels of client-go and controller-runtime.
//!
//! | name | kind | meaning |
//! |---|---|---|
//! | `workqueue_depth` | gauge | keys ready to be processed, with the additional label `priority` |
//! | `workqueue_adds_total` | counter | keys that became ready; merged adds are not counted |
//! | `workqueue_queue_duration_seconds` | histogram | time from ready to dequeued |
//! | `workqueue_work_duration_seconds` | histogram | time from dequeued to finished |
//! | `workqueue_unfinished_work_seconds` | gauge | time spent so far on the keys being processed, summed |
//! | `workqueue_longest_running_processor_seconds` | gauge | time spent so far on the key that has been processed longest |
//! | `workqueue_retries_total` | counter | accepted retries, requeues and delayed adds |
//!
//! Each series has the labels `controller` and `name`. Both contain the name of the queue, as in controller-runtime; client-go
//! only sets `name`. `priority` is the number of the [`Priority`](crate::Priority). A queue that has used more than 25 priorities has
//! one depth series, with the priority `exceeded_cardinality_limit`, as in controller-runtime. Buckets are those of client-go.
//!
//! A queue counts whether or not it is registered ([`QueueStats`]). A scrape reads the values, so registering a queue does
//! not slow it down.
//!
//! ```
//! use prometheus_client::registry::Registry;
//! use watchkeeper_workqueue::{WorkQueue, prometheus::QueueMetrics};
//!
//! let mut registry = Registry::default();
//! let metrics = QueueMetrics::register(&mut registry);
//! let queue = WorkQueue::new("pods");
//! metrics.add_queue(&queue)?;
//! queue.add("default/web");
//!
//! let mut text = String::new();
//! prometheus_client::encoding::text::encode(&mut text, &registry)?;
//! assert!(text.contains("workqueue_depth{controller=\"pods\",name=\"pods\",priority=\"0\"} 1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::{DurationHistogram, Key, QueueStats, WorkQueue, queue::Sample, sync::Mutex};

/// The queue metrics of one registry. Clones share the registry and its queues.
///
/// See the [module](self) for the metrics and an example.
#[derive(Debug, Clone)]
#[doc(alias = "MetricsProvider")]
#[doc(alias = "WorkQueueSubsystem")]
pub struct QueueMetrics {
    queues: Arc<Queues>,
}

/// The registered queues by name. A queue that was dropped has no series, and its name is free.
type Queues = Mutex<BTreeMap<String, Weak<dyn Sample>>>;

/// The error returned when the name of a queue is in use by another queue of the same registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a work queue named {name:?} is already registered in this metrics registry, and queues of one name would share their \
     series; choose a unique name"
)]
#[non_exhaustive]
pub struct DuplicateQueue {
    /// The name that is in use.
    pub name: String,
}

impl QueueMetrics {
    /// Registers the metrics. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        let queues = Arc::new(Queues::default());
        registry.register_collector(Box::new(QueueCollector(Arc::clone(&queues))));
        Self { queues }
    }

    /// Adds the series of a queue. They are removed when the last handle of the queue is dropped, or by
    /// [`remove_queue`](Self::remove_queue).
    ///
    /// # Errors
    /// Returns [`DuplicateQueue`] if another queue of this registry has the same name.
    pub fn add_queue<K: Key>(&self, queue: &WorkQueue<K>) -> Result<(), DuplicateQueue> {
        let (name, queue) = (queue.name().to_owned(), queue.downgrade());
        let mut queues = self.queues.lock();
        match queues.get(&name) {
            Some(other) if other.strong_count() > 0 && !other.ptr_eq(&queue) => Err(DuplicateQueue { name }),
            _ => {
                queues.insert(name, queue);
                Ok(())
            }
        }
    }

    /// Removes the series of a queue and frees its name. Has no effect on another queue of the same name.
    pub fn remove_queue<K: Key>(&self, queue: &WorkQueue<K>) {
        let mut queues = self.queues.lock();
        if queues.get(queue.name()).is_some_and(|registered| registered.ptr_eq(&queue.downgrade())) {
            queues.remove(queue.name());
        }
    }
}

#[derive(Debug)]
struct QueueCollector(Arc<Queues>);

impl QueueCollector {
    /// Returns the counters and gauges of all queues that exist.
    fn sample(&self) -> Vec<(String, QueueStats)> {
        let queues: Vec<(String, Arc<dyn Sample>)> = {
            let mut queues = self.0.lock();
            queues.retain(|_, queue| queue.strong_count() > 0);
            queues.iter().filter_map(|(name, queue)| Some((name.clone(), queue.upgrade()?))).collect()
        };
        // Unlocked: this may be the last reference to a queue, whose keys are then dropped here.
        queues.into_iter().map(|(name, queue)| (name, queue.stats())).collect()
    }
}

impl Collector for QueueCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let queues = self.sample();
        let help = "Keys ready to be processed, by priority";
        let mut depths = encoder.encode_descriptor("workqueue_depth", help, None, MetricType::Gauge)?;
        for (name, stats) in &queues {
            for (priority, keys) in depth_by_label(stats) {
                let [controller, name] = labels(name);
                let labels = [controller, name, ("priority", &priority)];
                let gauge = ConstGauge::new(i64::try_from(keys).unwrap_or(i64::MAX));
                gauge.encode(depths.encode_family(&labels)?)?;
            }
        }
        let mut metric = |name: &str, kind, help: &str, encode: EncodeFigure| {
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            queues.iter().try_for_each(|(name, stats)| encode(stats, metric.encode_family(&labels(name))?))
        };
        let help = "Keys that became ready to be processed";
        metric("workqueue_adds", MetricType::Counter, help, |stats, encoder| {
            ConstCounter::new(stats.adds).encode(encoder)
        })?;
        let help = "Accepted retries, requeues and delayed adds";
        metric("workqueue_retries", MetricType::Counter, help, |stats, encoder| {
            ConstCounter::new(stats.retries).encode(encoder)
        })?;
        let help = "Time from a key becoming ready until it was dequeued";
        metric("workqueue_queue_duration_seconds", MetricType::Histogram, help, |stats, encoder| {
            encode_histogram(&stats.queue_duration, encoder)
        })?;
        let help = "Time from a key being dequeued until it was finished";
        metric("workqueue_work_duration_seconds", MetricType::Histogram, help, |stats, encoder| {
            encode_histogram(&stats.work_duration, encoder)
        })?;
        let help = "Time spent so far on the keys being processed, summed";
        metric("workqueue_unfinished_work_seconds", MetricType::Gauge, help, |stats, encoder| {
            ConstGauge::new(stats.unfinished_work.as_secs_f64()).encode(encoder)
        })?;
        let help = "Time spent so far on the key that has been processed longest";
        metric("workqueue_longest_running_processor_seconds", MetricType::Gauge, help, |stats, encoder| {
            ConstGauge::new(stats.longest_running.as_secs_f64()).encode(encoder)
        })
    }
}

/// Returns the labels of all series, in alphabetical order, as Go's Prometheus client writes them.
fn labels(name: &str) -> [(&'static str, &str); 2] {
    [("controller", name), ("name", name)]
}

/// The largest number of priorities of one queue that have series of their own.
const MAX_PRIORITIES: usize = 25;

/// Returns the depth by the value of the label `priority`.
fn depth_by_label(stats: &QueueStats) -> Vec<(String, usize)> {
    if stats.depth.len() > MAX_PRIORITIES {
        let keys = stats.depth.iter().map(|(_, keys)| keys).sum();
        return vec![("exceeded_cardinality_limit".to_owned(), keys)];
    }
    stats.depth.iter().map(|(priority, keys)| (priority.0.to_string(), *keys)).collect()
}

type EncodeFigure = fn(&QueueStats, MetricEncoder<'_>) -> fmt::Result;

fn encode_histogram(histogram: &DurationHistogram, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    let seconds = |bound: Option<Duration>| bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64());
    let buckets: Vec<(f64, u64)> =
        histogram.buckets().map(|(bound, count)| (seconds(bound), count)).collect();
    encoder.encode_histogram::<NoLabelSet>(histogram.sum().as_secs_f64(), histogram.count(), &buckets, None)
}
