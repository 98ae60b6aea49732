//! The behaviour of the queue, seen from outside.

mod facts;
mod limiters;
mod metrics;
mod model;
mod priority_and_cause;
mod reference;
mod waiting;

use std::thread;

use prometheus_client::{encoding::text::encode, registry::Registry};
use watchkeeper_workqueue::{Key, WorkQueue, prometheus::QueueMetrics};

/// Registers a queue for metrics, and scrapes them on another thread as long as the queue exists, as a manager's endpoint does.
fn scraped<K: Key>(queue: WorkQueue<K>) -> WorkQueue<K> {
    let mut registry = Registry::default();
    QueueMetrics::register(&mut registry).add_queue(&queue).expect("the only queue");
    thread::spawn(move || {
        while scrape(&registry).contains("workqueue_adds_total{") {
            thread::yield_now();
        }
    });
    queue
}

fn scrape(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("text");
    text
}
