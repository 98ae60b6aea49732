//! What became of events.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Fate {
    /// Written, as a new object.
    Created,
    /// Counted in a series.
    Aggregated,
    /// The queue was full.
    QueueFull,
    /// One object had too many.
    RateLimited,
    /// The server refused it, or could not be reached for too long.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FateLabel {
    fate: Fate,
}

/// `watchkeeper_events_total`, labelled with what became of the event: `Created`, `Aggregated`, `QueueFull`, `RateLimited`, `Failed`.
#[derive(Debug, Clone, Default)]
pub struct EventMetrics {
    events: Family<FateLabel, Counter>,
}

impl EventMetrics {
    /// Registers the metric. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for fate in [Fate::Created, Fate::Aggregated, Fate::QueueFull, Fate::RateLimited, Fate::Failed] {
            metrics.of(fate);
        }
        registry.register(
            "watchkeeper_events",
            "Events recorded, by what became of them",
            metrics.events.clone(),
        );
        metrics
    }

    /// Events that nobody will see: the queue was full, one object had too many, or they could not be written.
    pub fn dropped(&self) -> u64 {
        [Fate::QueueFull, Fate::RateLimited, Fate::Failed].into_iter().map(|fate| self.of(fate).get()).sum()
    }

    pub(super) fn of(&self, fate: Fate) -> Counter {
        self.events.get_or_create_owned(&FateLabel { fate })
    }
}
