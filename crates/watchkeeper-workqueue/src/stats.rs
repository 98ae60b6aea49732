//! The counters and gauges of a queue.

use std::time::Duration;

use crate::Priority;

/// The counters and gauges of a queue at one moment, returned by [`WorkQueue::stats`](crate::WorkQueue::stats).
///
/// Every queue counts from its first key; nothing has to be enabled. [`prometheus`](crate::prometheus) exports these values under
/// client-go's metric names. Use this type for other exporters.
///
/// ```
/// use watchkeeper_workqueue::{Priority, WorkQueue};
///
/// let queue = WorkQueue::new("pods");
/// queue.add("default/web");
/// queue.add("default/web"); // merged
/// let stats = queue.stats();
/// assert_eq!(stats.adds, 1);
/// assert_eq!(stats.depth, [(Priority::NORMAL, 1)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Keys ready to be processed, by priority, highest first. Keys added again while they are processed are included.
    /// A priority stays in the list after its last key.
    pub depth: Vec<(Priority, usize)>,
    /// Keys that wait for a delay or a backoff.
    pub waiting: usize,
    /// Keys being processed.
    pub processing: usize,
    /// Time spent so far on the keys being processed, summed over the keys.
    pub unfinished_work: Duration,
    /// Time spent so far on the key that has been processed longest.
    pub longest_running: Duration,
    /// Keys that became ready since the queue was created. Merged adds are not counted.
    pub adds: u64,
    /// Accepted retries, requeues and delayed adds since the queue was created.
    pub retries: u64,
    /// How long keys were ready before they were dequeued.
    pub queue_duration: DurationHistogram,
    /// How long keys were processed.
    pub work_duration: DurationHistogram,
}

/// A histogram of durations with the buckets of client-go's queue metrics: 10 ns to 1000 s, one per power of ten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    /// The last bucket has no upper bound.
    counts: [u64; BOUNDED_BUCKETS + 1],
    sum_nanos: u64,
}

const BOUNDED_BUCKETS: usize = 12;

impl DurationHistogram {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations. Saturates after 584 years.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// Returns the buckets, shortest first: the inclusive upper bound, `None` for the last, and the number of durations in
    /// this bucket alone.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = std::iter::successors(Some(10_u64), |nanos| nanos.checked_mul(10)).take(BOUNDED_BUCKETS);
        bounds.map(|nanos| Some(Duration::from_nanos(nanos))).chain([None]).zip(self.counts)
    }

    pub(crate) fn observe(&mut self, nanos: u64) {
        // The digits of a number, less one for an inclusive bound, are its bucket.
        let digits = nanos.saturating_sub(1).checked_ilog10().unwrap_or(0) as usize;
        self.counts[digits.min(BOUNDED_BUCKETS)] += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }
}
