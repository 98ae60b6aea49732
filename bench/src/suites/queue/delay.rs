//! Rows about delayed adds: what inserting costs, and how late delivery comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use watchkeeper_workqueue::WorkQueue;

use super::load::{self, Key};
use crate::clock;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::stats::percentile;
use crate::suite::{Load, RunFailure};

const WINDOW: Duration = Duration::from_secs(5);
const CONSUMERS: usize = 2;

/// Delayed adds of distinct keys, none of which comes due.
pub(super) fn insert(load: Load) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let runtime = load::one_thread()?;
    let queue = WorkQueue::new("delay-insert");
    let _context = runtime.enter();
    let meter = Meter::start();
    delay_all(&queue, &keys);
    let measured = meter.stop(load.operations);
    let waiting = queue.waiting_len();
    if waiting != keys.len() {
        return Err(format!("{waiting} keys wait, want {}", keys.len()).into());
    }
    Ok(measured)
}

/// Gives every key its far delay. Each is in its place when the call returns, with no task in between.
pub(super) fn delay_all(queue: &WorkQueue<Key>, keys: &[Key]) {
    for (index, key) in (0..).zip(keys) {
        queue.add_after(key.clone(), load::far_delay(index));
    }
}

/// When each key is due, counted from `epoch` in nanoseconds.
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

    /// How late a key comes now. Fails when it comes early.
    fn lateness_ns(&self, key: &str) -> Result<u64, RunFailure> {
        let now = self.now_ns();
        let due = load::index_of(key).and_then(|index| self.due_ns.get(index)).ok_or("a key nobody added")?;
        // Relaxed is enough: the queue hands the key over, and with it everything written before the add.
        let due = due.load(Ordering::Relaxed);
        now.checked_sub(due).ok_or_else(|| format!("{key} came {} ns before it was due", due - now).into())
    }
}

/// Delays over a window, all delivered; the lateness of every single key.
pub(super) fn lateness(load: Load) -> Result<Measurement, RunFailure> {
    // Held until the end, as the peer's are: letting a million keys go takes a thread of the runtime some ten milliseconds, in
    // which it hands nothing out.
    let keys: Arc<[Key]> = load::keys(load.operations).into();
    let queue = WorkQueue::new("lateness");
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

/// The due time is read before the call, so it is at or before the queue's own: a delivery ahead of it is early beyond
/// doubt, and lateness includes the cost of the call.
///
/// It gives way now and then, as every task does that takes what it adds from a stream: a worker it wakes is put next in
/// line on its own thread, and would have to wait for the last of all keys.
async fn produce(queue: &WorkQueue<Key>, schedule: &Schedule, keys: &[Key]) {
    for ((index, key), due_ns) in (0..).zip(keys).zip(&schedule.due_ns) {
        let delay = load::spread(index, WINDOW);
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        due_ns.store(schedule.now_ns().saturating_add(delay_ns), Ordering::Relaxed);
        queue.add_after(key.clone(), delay);
        tokio::task::coop::consume_budget().await;
    }
}

async fn consume(
    queue: WorkQueue<Key>,
    schedule: Arc<Schedule>,
    mut late: Vec<u64>,
) -> Result<Vec<u64>, RunFailure> {
    let mut worker = queue.worker();
    while let Some(item) = worker.next().await {
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
    fn a_key_that_comes_early_or_from_nowhere_is_an_error() {
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
        assert_eq!(lateness("namespace-002/pod-name-00000002"), Err("a key nobody added".to_owned()));
    }
}
