//! What the metrics say, on a clock that moves only when told to.
#![cfg(feature = "prometheus")]

use std::time::Duration;

use prometheus_client::{encoding::text::encode, registry::Registry};
use watchkeeper_workqueue::{Item, ManualClock, WorkQueue, prometheus::QueueMetrics};

struct Scrape {
    registry: Registry,
    metrics: QueueMetrics,
    clock: ManualClock,
    queue: WorkQueue<&'static str>,
}

impl Scrape {
    fn new() -> Self {
        let (mut registry, clock) = (Registry::default(), ManualClock::new());
        let metrics = QueueMetrics::register(&mut registry);
        let own = metrics.queue("test").expect("a name of its own");
        let queue = WorkQueue::builder("test").clock(clock.clone()).metrics(own).build();
        Self { registry, metrics, clock, queue }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("text");
        text
    }

    #[track_caller]
    fn shows(&self, name: &str, value: &str) {
        let line = format!("workqueue_{name}{{name=\"test\"}} {value}\n");
        let text = self.text();
        assert!(text.contains(&line), "no {line:?} in:\n{text}");
    }
}

#[test]
fn every_metric_follows_a_key_through_the_queue() {
    let scrape = Scrape::new();
    let (queue, clock) = (&scrape.queue, &scrape.clock);
    queue.add("foo");
    scrape.shows("depth", "1");
    scrape.shows("adds_total", "1");
    queue.add("foo"); // merges
    scrape.shows("depth", "1");
    scrape.shows("adds_total", "1");

    clock.advance(Duration::from_millis(500));
    let item = queue.try_get().unwrap();
    scrape.shows("queue_duration_seconds_sum", "0.5");
    scrape.shows("depth", "0");

    queue.add("foo"); // while processed: due again, counted, and part of the depth
    scrape.shows("depth", "1");
    scrape.shows("adds_total", "2");

    clock.advance(Duration::from_millis(250));
    scrape.shows("unfinished_work_seconds", "0.25");
    scrape.shows("longest_running_processor_seconds", "0.25");
    item.done();
    scrape.shows("work_duration_seconds_sum", "0.25");
    scrape.shows("unfinished_work_seconds", "0.0");
    scrape.shows("adds_total", "2");

    let again = queue.try_get().unwrap();
    scrape.shows("queue_duration_seconds_count", "2");
    scrape.shows("queue_duration_seconds_sum", "0.75");
    again.retry();
    scrape.shows("retries_total", "1");
    scrape.shows("depth", "0");
    clock.advance(Duration::from_secs(1));
    assert_eq!(queue.len(), 1);
    scrape.shows("adds_total", "3");
    queue.add_after("bar", Duration::from_secs(1));
    scrape.shows("retries_total", "2");
}

#[test]
fn work_in_progress_adds_up_over_keys_and_the_longest_is_told() {
    let scrape = Scrape::new();
    scrape.queue.add("a");
    scrape.queue.add("b");
    let first = scrape.queue.try_get().unwrap();
    scrape.clock.advance(Duration::from_secs(3));
    let second = scrape.queue.try_get().unwrap();
    scrape.clock.advance(Duration::from_secs(1));
    scrape.shows("unfinished_work_seconds", "5.0");
    scrape.shows("longest_running_processor_seconds", "4.0");
    first.done();
    second.done();
}

#[test]
fn refused_adds_and_retries_are_not_counted() {
    let scrape = Scrape::new();
    scrape.queue.add("a");
    let item = scrape.queue.try_get().unwrap();
    scrape.queue.shutdown();
    scrape.queue.add("b");
    scrape.queue.add_after("c", Duration::from_secs(1));
    item.retry();
    scrape.shows("adds_total", "1");
    scrape.shows("retries_total", "0");
    scrape.shows("depth", "0");
}

#[test]
fn the_series_of_a_queue_go_with_its_last_handle() {
    let Scrape { registry, clock, queue, .. } = Scrape::new();
    queue.add("a");
    let held = queue.try_get().map(Item::into_owned);
    drop(queue);
    let scrape = |registry: &Registry| {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    };
    assert!(scrape(&registry).contains("name=\"test\""), "an item keeps its queue");
    drop(held);
    assert!(!scrape(&registry).contains("name=\"test\""));
    drop(clock);
}

#[test]
fn a_second_queue_of_one_name_is_rejected_and_leaves_the_series_of_the_first_alone() {
    let scrape = Scrape::new();
    scrape.queue.add("a");
    let error = scrape.metrics.queue("test").err().unwrap();
    assert_eq!(error.name, "test");
    assert!(error.to_string().contains("choose a unique name"), "{error}");
    scrape.shows("depth", "1");
    scrape.shows("unfinished_work_seconds", "0.0");
}

#[test]
fn a_name_is_free_again_when_its_queue_or_its_unused_metrics_are_dropped() {
    let Scrape { metrics, queue, .. } = Scrape::new();
    drop(queue);
    drop(metrics.queue("test").unwrap());
    metrics.queue("test").unwrap();
}

#[test]
fn a_queue_that_outlives_its_registration_leaves_its_successor_alone() {
    let mut registry = Registry::default();
    let metrics = QueueMetrics::register(&mut registry);
    let own = metrics.queue("test").unwrap();
    let old = WorkQueue::<&str>::builder("test").metrics(own.clone()).build();
    own.detached();
    let new = WorkQueue::<&str>::builder("test").metrics(metrics.queue("test").unwrap()).build();
    new.add("a");
    drop((old, own));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(text.contains("workqueue_depth{name=\"test\"} 1\n"), "{text}");
    assert!(text.contains("workqueue_unfinished_work_seconds{name=\"test\"} 0.0\n"), "{text}");
}

#[test]
fn names_and_kinds_are_those_of_kubernetes_controllers() {
    let text = Scrape::new().text();
    for line in [
        "# TYPE workqueue_depth gauge",
        "# TYPE workqueue_adds counter",
        "# TYPE workqueue_queue_duration_seconds histogram",
        "# TYPE workqueue_work_duration_seconds histogram",
        "# TYPE workqueue_unfinished_work_seconds gauge",
        "# TYPE workqueue_longest_running_processor_seconds gauge",
        "# TYPE workqueue_retries counter",
    ] {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
}
