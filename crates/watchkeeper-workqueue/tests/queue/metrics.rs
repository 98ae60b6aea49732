//! The metrics of a queue, on a manual clock.

use std::time::Duration;

use prometheus_client::registry::Registry;
use watchkeeper_workqueue::{AddOptions, Item, ManualClock, Priority, WorkQueue, prometheus::QueueMetrics};

use crate::scrape;

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
        let queue = WorkQueue::builder("test").clock(clock.clone()).build();
        metrics.add_queue(&queue).expect("a unique name");
        Self { registry, metrics, clock, queue }
    }

    fn text(&self) -> String {
        scrape(&self.registry)
    }

    #[track_caller]
    fn shows(&self, name: &str, value: &str) {
        self.shows_line(&format!("workqueue_{name}{{controller=\"test\",name=\"test\"}} {value}\n"));
    }

    #[track_caller]
    fn shows_depth(&self, priority: i8, keys: usize) {
        let labels = format!("controller=\"test\",name=\"test\",priority=\"{priority}\"");
        self.shows_line(&format!("workqueue_depth{{{labels}}} {keys}\n"));
    }

    #[track_caller]
    fn shows_line(&self, line: &str) {
        let text = self.text();
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
}

#[test]
fn every_metric_follows_a_key_through_the_queue() {
    let scrape = Scrape::new();
    let (queue, clock) = (&scrape.queue, &scrape.clock);
    queue.add("foo");
    scrape.shows_depth(0, 1);
    scrape.shows("adds_total", "1");
    queue.add("foo"); // merges
    scrape.shows_depth(0, 1);
    scrape.shows("adds_total", "1");

    clock.advance(Duration::from_millis(500));
    let item = queue.try_get().unwrap();
    scrape.shows("queue_duration_seconds_sum", "0.5");
    scrape.shows_depth(0, 0);

    queue.add("foo"); // while it is processed: ready again, counted, and part of the depth
    scrape.shows_depth(0, 1);
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
    scrape.shows_depth(0, 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(queue.len(), 1);
    scrape.shows("adds_total", "3");
    queue.add_after("bar", Duration::from_secs(1));
    scrape.shows("retries_total", "2");
}

#[test]
fn work_in_progress_is_summed_over_keys_and_the_longest_is_shown() {
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
    scrape.shows_depth(0, 0);
}

#[test]
fn the_series_of_a_queue_are_removed_with_its_last_handle() {
    let Scrape { registry, queue, .. } = Scrape::new();
    queue.add("a");
    let item = queue.try_get().map(Item::into_owned);
    drop(queue);
    assert!(scrape(&registry).contains("name=\"test\""), "an item keeps its queue");
    drop(item);
    assert!(!scrape(&registry).contains("name=\"test\""));
}

#[test]
fn a_second_queue_of_one_name_is_rejected_and_the_series_of_the_first_are_kept() {
    let scrape = Scrape::new();
    scrape.queue.add("a");
    let error = scrape.metrics.add_queue(&WorkQueue::<u8>::new("test")).unwrap_err();
    assert_eq!(error.name, "test");
    assert!(error.to_string().contains("choose a unique name"), "{error}");
    scrape.shows_depth(0, 1);
    assert_eq!(scrape.metrics.add_queue(&scrape.queue), Ok(()), "the same queue may be added again");
}

#[test]
fn a_name_is_free_when_its_queue_is_dropped_or_removed() {
    let Scrape { registry, metrics, queue, .. } = Scrape::new();
    metrics.remove_queue(&queue);
    assert!(!scrape(&registry).contains("name=\"test\""));
    let next = WorkQueue::<u8>::new("test");
    assert_eq!(metrics.add_queue(&next), Ok(()));
    next.add(1);
    metrics.remove_queue(&queue);
    drop(queue);
    let shown = scrape(&registry);
    assert!(shown.contains("workqueue_adds_total{controller=\"test\",name=\"test\"} 1\n"), "{shown}");
    drop(next);
    assert_eq!(metrics.add_queue(&WorkQueue::<u8>::new("test")), Ok(()));
}

#[test]
fn depth_is_shown_by_priority_including_keys_added_again_while_processed() {
    let scrape = Scrape::new();
    let queue = &scrape.queue;
    scrape.shows_depth(0, 0);
    let at = |priority| AddOptions::new().priority(priority);
    queue.add_with("a", at(Priority::LOW));
    queue.add_with("b", at(Priority::LOW));
    queue.add("c");
    scrape.shows_depth(-100, 2);
    scrape.shows_depth(0, 1);
    let item = queue.try_get().unwrap();
    queue.add_with("c", at(Priority(7)));
    scrape.shows_depth(0, 0);
    scrape.shows_depth(7, 1);
    item.done();
    scrape.shows_depth(7, 1);
    queue.add("a");
    scrape.shows_depth(-100, 1);
    scrape.shows_depth(0, 1);
}

#[test]
fn the_depth_of_a_queue_with_more_than_25_priorities_is_one_series() {
    let scrape = Scrape::new();
    let queue = WorkQueue::new("many");
    scrape.metrics.add_queue(&queue).expect("a unique name");
    let add = |priority: i8| queue.add_with(priority, AddOptions::new().priority(Priority(priority)));
    let shown = || -> Vec<String> {
        let text = scrape.text();
        let depths =
            text.lines().filter_map(|line| line.strip_prefix("workqueue_depth{controller=\"many\","));
        depths.map(str::to_owned).collect()
    };
    // The normal priority, 0, is always one of them.
    (1..25).for_each(|priority| _ = add(priority));
    assert_eq!(shown().len(), 25);
    add(-1);
    assert_eq!(shown(), ["name=\"many\",priority=\"exceeded_cardinality_limit\"} 25"]);
    assert!(queue.try_get().is_some());
    assert_eq!(shown(), ["name=\"many\",priority=\"exceeded_cardinality_limit\"} 24"]);
    scrape.shows_depth(0, 0);
}

#[test]
fn a_histogram_has_the_buckets_of_client_go() {
    let scrape = Scrape::new();
    scrape.queue.add("a");
    scrape.clock.advance(Duration::from_millis(2));
    let _item = scrape.queue.try_get().unwrap();
    let shown = scrape.text();
    let counts: Vec<(&str, &str)> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("workqueue_queue_duration_seconds_bucket{le=\""))
        .filter_map(|line| Some((line.split_once('"')?.0, line.rsplit_once(' ')?.1)))
        .collect();
    let expected = [
        ("1e-8", "0"),
        ("1e-7", "0"),
        ("0.000001", "0"),
        ("0.00001", "0"),
        ("0.0001", "0"),
        ("0.001", "0"),
        ("0.01", "1"),
        ("0.1", "1"),
        ("1.0", "1"),
        ("10.0", "1"),
        ("100.0", "1"),
        ("1000.0", "1"),
        ("+Inf", "1"),
    ];
    assert_eq!(counts, expected, "{shown}");
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

#[test]
fn a_duration_is_counted_in_the_first_bucket_whose_bound_it_does_not_exceed() {
    for nanos in
        [0, 1, 9, 10, 11, 99, 100, 101, 999_999_999_999, 1_000_000_000_000, 1_000_000_000_001, u64::MAX]
    {
        let Scrape { clock, queue, .. } = Scrape::new();
        queue.add("a");
        clock.advance(Duration::from_nanos(nanos));
        let _item = queue.try_get().unwrap();
        let histogram = queue.stats().queue_duration;
        let fits = |bound: Option<Duration>| bound.is_none_or(|bound| Duration::from_nanos(nanos) <= bound);
        let expected = histogram.buckets().position(|(bound, _)| fits(bound));
        assert_eq!(histogram.buckets().position(|(_, count)| count == 1), expected, "{nanos} ns");
        assert_eq!((histogram.count(), histogram.sum()), (1, Duration::from_nanos(nanos)));
    }
}

#[test]
fn due_keys_are_ready_in_a_scrape_even_if_no_worker_takes_them() {
    let scrape = Scrape::new();
    for key in ["a", "b", "c"] {
        scrape.queue.add_after(key, Duration::from_secs(1));
    }
    scrape.clock.advance(Duration::from_secs(3));
    scrape.shows_depth(0, 3);
    scrape.shows("adds_total", "3");
    let _item = scrape.queue.try_get().unwrap();
    scrape.shows("queue_duration_seconds_sum", "2.0"); // ready since the end of its delay
}

#[test]
fn all_due_keys_are_counted_however_many_they_are() {
    let clock = ManualClock::new();
    let queue: WorkQueue<u32> = WorkQueue::builder("test").clock(clock.clone()).build();
    (0..1000).for_each(|key| _ = queue.add_after(key, Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    assert_eq!((queue.len(), queue.waiting_len()), (1000, 0));
    assert_eq!(queue.stats().depth, [(Priority::NORMAL, 1000)]);
}
