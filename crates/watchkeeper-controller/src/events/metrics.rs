//! Metrics of recorded events.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::metrics::register;

/// The fate of a recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum EventFate {
    /// The event was written as a new object.
    Created,
    /// The event was added to a series.
    Aggregated,
    /// The event was dropped because the queue was full.
    QueueFull,
    /// The event was dropped because its object had too many events.
    RateLimited,
    /// The event was dropped because the server rejected it or all attempts to write it failed.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FateLabel {
    fate: EventFate,
}

/// The metric `watchkeeper_events_total`: recorded events by `fate`, which is `Created`, `Aggregated`, `QueueFull`,
/// `RateLimited` or `Failed`.
#[derive(Debug, Clone, Default)]
pub struct EventMetrics {
    events: Family<FateLabel, Counter>,
}

impl EventMetrics {
    /// Registers the metric. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        let events = register(registry, "watchkeeper_events", "Events recorded, by fate", Family::default());
        let metrics = Self { events };
        for fate in [
            EventFate::Created,
            EventFate::Aggregated,
            EventFate::QueueFull,
            EventFate::RateLimited,
            EventFate::Failed,
        ] {
            metrics.counter(fate);
        }
        metrics
    }

    /// Returns the number of dropped events: because the queue was full, an object had too many, or the write failed.
    pub fn dropped(&self) -> u64 {
        [EventFate::QueueFull, EventFate::RateLimited, EventFate::Failed]
            .into_iter()
            .map(|fate| self.counter(fate).get())
            .sum()
    }

    pub(super) fn counter(&self, fate: EventFate) -> Counter {
        self.events.get_or_create_owned(&FateLabel { fate })
    }
}
