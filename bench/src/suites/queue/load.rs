//! The parts that all rows of this suite share: keys, causes, delays, metrics and runtimes. The Go side uses the same keys and
//! delays.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::runtime::{Builder, Runtime};
use watchkeeper_workqueue::prometheus::QueueMetrics;
use watchkeeper_workqueue::{AddOptions, Cause, WorkQueue};

use crate::suite::RunFailure;

/// A key as a controller uses it: shared, so that passing it on copies no text.
pub(super) type Key = Arc<str>;

const HOUR: Duration = Duration::from_hours(1);

/// Returns the first `count` keys.
pub(super) fn keys(count: u64) -> Vec<Key> {
    (0..count).map(|index| format!("namespace-{:03}/pod-name-{index:08}", index % 1000).into()).collect()
}

/// Returns the index from which a key was made.
pub(super) fn index_of(key: &str) -> Option<usize> {
    key.get(key.len().checked_sub(8)?..)?.parse().ok()
}

/// Returns the part of `count` keys that producer number `producer` of `producers` adds.
pub(super) fn part(count: usize, producer: usize, producers: usize) -> Range<usize> {
    producer * count / producers..(producer + 1) * count / producers
}

/// Returns a delay within `window`, spread evenly over the indexes: `SplitMix64` of the index, the same on both sides.
pub(super) fn spread(index: u64, window: Duration) -> Duration {
    let mut mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos(mixed % window)
}

/// Returns a delay of 1 to 2 hours, so that no key becomes due during the measurement.
pub(super) fn far_delay(index: u64) -> Duration {
    HOUR + spread(index, HOUR)
}

/// Returns the options of an add: the cause of an event, as an event handler sets it.
pub(super) fn event() -> AddOptions {
    AddOptions::new().cause(Cause::Event("Pod".into()))
}

/// A queue whose metrics are in a registry, as those of a controller are.
pub(super) struct Measured {
    pub(super) queue: WorkQueue<Key>,
    registry: Registry,
}

impl Measured {
    pub(super) fn new(name: &str) -> Result<Self, RunFailure> {
        Self::with(WorkQueue::new(name))
    }

    pub(super) fn with(queue: WorkQueue<Key>) -> Result<Self, RunFailure> {
        let mut registry = Registry::default();
        QueueMetrics::register(&mut registry).add_queue(&queue)?;
        Ok(Self { queue, registry })
    }

    /// Fails unless a scrape shows that so many keys became ready.
    pub(super) fn expect_adds(&self, keys: u64) -> Result<(), RunFailure> {
        let (mut text, name) = (String::new(), self.queue.name());
        encode(&mut text, &self.registry)?;
        let line = format!("workqueue_adds_total{{controller=\"{name}\",name=\"{name}\"}} {keys}\n");
        if text.contains(&line) { Ok(()) } else { Err(format!("no {line:?} in the metrics").into()) }
    }
}

/// Returns the runtime of the rows with several tasks: two workers, on every machine.
pub(super) fn two_workers() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_time().build()
}

/// Returns the runtime of the rows with one task.
pub(super) fn one_thread() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_carry_their_index() {
        let keys = keys(1002);
        assert_eq!(&*keys[1001], "namespace-001/pod-name-00001001");
        assert_eq!(index_of(&keys[1001]), Some(1001));
        assert_eq!(index_of("short"), None);
    }

    #[test]
    fn producers_share_all_keys_without_overlap() {
        for (count, producers) in [(10, 1), (10, 4), (3, 4), (1_000_000, 4)] {
            let mut next = 0;
            for producer in 0..producers {
                let part = part(count, producer, producers);
                assert_eq!(part.start, next, "{count} keys, {producers} producers");
                next = part.end;
            }
            assert_eq!(next, count);
        }
    }

    #[test]
    fn delays_are_those_of_the_peer() {
        let window = Duration::from_secs(5);
        let some = [0, 1, 999_999].map(|index| spread(index, window).as_nanos());
        assert_eq!(some, [1_658_607_535, 2_194_355_700, 1_996_442_353]);
    }
}
