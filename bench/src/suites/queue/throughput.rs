//! Rows that compare CPU per key while keys pass through the queue.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use watchkeeper_workqueue::{Item, WorkQueue, limiter::ItemExponential};

use super::load::{self, Key};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

const HOT_KEYS: u64 = 1000;

/// Add, get and done by one task, key by key.
pub(super) fn lockstep(load: Load) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let queue = WorkQueue::new("lockstep");
    let runtime = load::one_thread()?;
    let meter = Meter::start();
    let handled = runtime.block_on(async {
        let (mut handled, mut worker) = (0, queue.worker());
        for key in &keys {
            queue.add_ref(key);
            if let Some(item) = worker.next().await {
                item.done();
                handled += 1;
            }
        }
        handled
    });
    let measured = meter.stop(load.operations);
    expect_handled(handled, load)?;
    Ok(measured)
}

/// Distinct keys from producers to consumers.
pub(super) fn distinct(load: Load, producers: usize, consumers: usize) -> Result<Measurement, RunFailure> {
    let queue = WorkQueue::new("distinct");
    let add = |queue: &WorkQueue<Key>, key: Key| {
        queue.add(key);
    };
    produce_and_consume(load, producers, consumers, &queue, add, done)
}

/// Rate limited adds, forgotten when handled. The limiter says "now" every time, so that the row shows what the limiter
/// and the queue cost and not what waiting does; it also spares client-go the detour through its delaying goroutine.
pub(super) fn rate_limited(load: Load) -> Result<Measurement, RunFailure> {
    let limiter = ItemExponential::new(Duration::ZERO, Duration::from_secs(1));
    let queue = WorkQueue::builder("rate-limited").rate_limiter(limiter).build();
    let add = |queue: &WorkQueue<Key>, key: Key| {
        queue.add_rate_limited(key);
    };
    produce_and_consume(load, 1, 1, &queue, add, forget)
}

fn done(item: Item<'_, Key>) {
    item.done();
}

fn forget(item: Item<'_, Key>) {
    item.forget();
}

/// A task per producer, each over its own part of the keys, and a task per consumer. Shutting down after the last add
/// lets the consumers empty the queue and then end.
fn produce_and_consume(
    load: Load,
    producers: usize,
    consumers: usize,
    queue: &WorkQueue<Key>,
    add: fn(&WorkQueue<Key>, Key),
    finish: fn(Item<'_, Key>),
) -> Result<Measurement, RunFailure> {
    let keys: Arc<[Key]> = load::keys(load.operations).into();
    let runtime = load::two_workers()?;
    let meter = Meter::start();
    let handled = runtime.block_on(async {
        let mut working = JoinSet::new();
        for _ in 0..consumers {
            let mut worker = queue.worker();
            working.spawn(async move {
                let mut handled = 0_u64;
                while let Some(item) = worker.next().await {
                    finish(item);
                    handled += 1;
                }
                handled
            });
        }
        let mut adding = JoinSet::new();
        for producer in 0..producers {
            let (queue, keys) = (queue.clone(), Arc::clone(&keys));
            adding.spawn(async move {
                for key in &keys[load::part(keys.len(), producer, producers)] {
                    add(&queue, key.clone());
                }
            });
        }
        adding.join_all().await;
        queue.shutdown();
        working.join_all().await.into_iter().sum()
    });
    let measured = meter.stop(load.operations);
    expect_handled(handled, load)?;
    Ok(measured)
}

/// Adds of all keys while all of them are queued: the caller hands in what it handed in before, as a cache does.
pub(super) fn duplicate(load: Load) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let queue = filled(&keys);
    let meter = Meter::start();
    for key in &keys {
        queue.add_ref(key);
    }
    let measured = meter.stop(load.operations);
    expect_queued(&queue, keys.len())?;
    Ok(measured)
}

/// Adds of a few keys equal to queued ones but allocated apart from them, as an event handler would make them.
pub(super) fn duplicate_hot(load: Load) -> Result<Measurement, RunFailure> {
    let queue = filled(&load::keys(HOT_KEYS));
    let again = load::keys(HOT_KEYS);
    let mut next = again.iter().cycle();
    let meter = Meter::start();
    for key in next.by_ref().take(usize::try_from(load.operations)?) {
        queue.add_ref(key);
    }
    let measured = meter.stop(load.operations);
    expect_queued(&queue, again.len())?;
    Ok(measured)
}

fn filled(keys: &[Key]) -> WorkQueue<Key> {
    let queue = WorkQueue::new("duplicate");
    for key in keys {
        queue.add_ref(key);
    }
    queue
}

fn expect_queued(queue: &WorkQueue<Key>, want: usize) -> Result<(), RunFailure> {
    match queue.len() {
        queued if queued == want => Ok(()),
        queued => Err(format!("{queued} keys queued after adding duplicates of {want}").into()),
    }
}

fn expect_handled(handled: u64, load: Load) -> Result<(), RunFailure> {
    if handled == load.operations {
        Ok(())
    } else {
        Err(format!("{handled} keys handled, want {}", load.operations).into())
    }
}
