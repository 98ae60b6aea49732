//! Rows about delayed adds: the cost of inserting, and the lateness of delivery.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use watchkeeper_workqueue::WorkQueue;

use super::load::{self, Key, Measured};
use crate::clock;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::stats::percentile;
use crate::suite::{Load, RunFailure};

const WINDOW: Duration = Duration::from_secs(5);
const CONSUMERS: usize = 2;

/// Measures delayed adds of distinct keys, none of which becomes due.
pub(super) fn insert(load: Load) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let runtime = load::one_thread()?;
    let Measured { queue, .. } = &Measured::new("delay-insert")?;
    let _context = runtime.enter();
    let meter = Meter::start();
    delay_all(queue, &keys);
    let measured = meter.stop(load.operations);
    let waiting = queue.waiting_len();
    if waiting != keys.len() {
        return Err(format!("{waiting} keys wait, want {}", keys.len()).into());
    }
    Ok(measured)
}

/// Adds every key with its far delay. Each key is in the queue when the call returns.
pub(super) fn delay_all(queue: &WorkQueue<Key>, keys: &[Key]) {
    let event = load::event();
    for (index, key) in (0..).zip(keys) {
        queue.add_with(Arc::clone(key), event.clone().after(load::far_delay(index)));
    }
}

/// The due time of each key, in nanoseconds since `epoch`.
#[derive(Debug)]
struct Schedule {
    epoch: Instant,
    due_ns: Vec<AtomicU64>,
    undelivered: AtomicU64,
}

impl Schedule {
    fn now_ns(&self) -> u64 {
        u64::try_from(clock::wall().duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns how late a key is now. Fails if it is early.
    fn lateness_ns(&self, key: &str) -> Result<u64, RunFailure> {
        let now = self.now_ns();
        let due =
            load::index_of(key).and_then(|index| self.due_ns.get(index)).ok_or("a key that was not added")?;
        // Relaxed suffices: the lock of the queue orders the store before the add and this load after the dequeue.
        let due = due.load(Ordering::Relaxed);
        now.checked_sub(due).ok_or_else(|| format!("{key} came {} ns before it was due", due - now).into())
    }
}

/// Measures the lateness of every key, with delays spread over a window.
pub(super) fn lateness(load: Load) -> Result<Measurement, RunFailure> {
    // Kept until the end, as on the peer's side: dropping a million keys blocks a thread of the runtime for some ten milliseconds.
    let keys: Arc<[Key]> = load::keys(load.operations).into();
    let measured_queue = Measured::new("lateness")?;
    let queue = &measured_queue.queue;
    let schedule = Arc::new(Schedule {
        epoch: clock::wall(),
        due_ns: keys.iter().map(|_| AtomicU64::new(0)).collect(),
        undelivered: AtomicU64::new(load.operations),
    });
    let runtime = load::two_workers()?;
    let meter = Meter::start();
    let collected: Result<Vec<Vec<u64>>, RunFailure> = runtime.block_on(async {
        let mut working = JoinSet::new();
        for _ in 0..CONSUMERS {
            let room = Vec::with_capacity(keys.len());
            working.spawn(consume(queue.clone(), Arc::clone(&schedule), room));
        }
        let mut adding = JoinSet::new();
        let (queue, schedule, keys) = (queue.clone(), Arc::clone(&schedule), Arc::clone(&keys));
        adding.spawn(async move { produce(&queue, &schedule, &keys).await });
        adding.join_all().await;
        working.join_all().await.into_iter().collect()
    });
    let measured = meter.stop(load.operations);
    measured_queue.expect_adds(load.operations)?;

    let mut late: Vec<u64> = collected?.into_iter().flatten().collect();
    late.sort_unstable();
    if late.len() as u64 != load.operations {
        return Err(format!("{} keys delivered, want {}", late.len(), load.operations).into());
    }
    let milliseconds = |nanoseconds: u64| as_f64(nanoseconds) / 1e6;
    let (p99, max) = percentile(&late, 99).zip(late.last().copied()).ok_or("no key was delivered")?;
    Ok(measured
        .with_figure("late_mean_ms", milliseconds(late.iter().sum()) / as_f64(load.operations))
        .with_figure("late_p99_ms", milliseconds(p99))
        .with_figure("late_max_ms", milliseconds(max)))
}

/// Adds every key with its delay.
///
/// The due time is read before the call, so it is not later than the queue's own: a delivery before it is early, and lateness
/// includes the cost of the call. The producer yields as a task that reads from a stream does: tokio schedules a worker that a
/// task wakes on the thread of that task.
async fn produce(queue: &WorkQueue<Key>, schedule: &Schedule, keys: &[Key]) {
    let event = load::event();
    for ((index, key), due_ns) in (0..).zip(keys).zip(&schedule.due_ns) {
        let delay = load::spread(index, WINDOW);
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        due_ns.store(schedule.now_ns().saturating_add(delay_ns), Ordering::Relaxed);
        queue.add_with(Arc::clone(key), event.clone().after(delay));
        tokio::task::coop::consume_budget().await;
    }
}

async fn consume(
    queue: WorkQueue<Key>,
    schedule: Arc<Schedule>,
    mut late: Vec<u64>,
) -> Result<Vec<u64>, RunFailure> {
    while let Some(item) = queue.get().await {
        late.push(schedule.lateness_ns(item.key())?);
        item.done();
        if schedule.undelivered.fetch_sub(1, Ordering::Relaxed) == 1 {
            queue.shutdown();
        }
    }
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_early_or_unknown_is_an_error() {
        let far = u64::MAX / 2;
        let schedule = Schedule {
            epoch: clock::wall(),
            due_ns: vec![AtomicU64::new(0), AtomicU64::new(far)],
            undelivered: AtomicU64::new(2),
        };
        let lateness = |key| schedule.lateness_ns(key).map_err(|error| error.to_string());
        assert!(lateness("namespace-000/pod-name-00000000").is_ok_and(|late_ns| late_ns < far));
        assert!(
            lateness("namespace-001/pod-name-00000001").is_err_and(|text| text.contains("before it was due"))
        );
        assert_eq!(lateness("namespace-002/pod-name-00000002"), Err("a key that was not added".to_owned()));
    }
}
