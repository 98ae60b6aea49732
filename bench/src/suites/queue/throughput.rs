//! Rows that compare CPU per key while keys pass through the queue.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use watchkeeper_workqueue::{AddOptions, Item, WorkQueue, limiter::ItemExponential};

use super::load::{self, Key, Measured};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

const HOT_KEYS: u64 = 1000;

/// Measures add, get and done by one task, key by key.
pub(super) fn lockstep(load: Load) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let measured_queue = Measured::new("lockstep")?;
    let (queue, event) = (&measured_queue.queue, load::event());
    let runtime = load::one_thread()?;
    let meter = Meter::start();
    let handled = runtime.block_on(async {
        let mut handled = 0;
        for key in &keys {
            queue.add_with(Arc::clone(key), event.clone());
            if let Some(item) = queue.get().await {
                item.done();
                handled += 1;
            }
        }
        handled
    });
    let measured = meter.stop(load.operations);
    expect_handled(handled, load)?;
    measured_queue.expect_adds(load.operations)?;
    Ok(measured)
}

/// Measures distinct keys from producers to consumers.
pub(super) fn distinct(load: Load, producers: usize, consumers: usize) -> Result<Measurement, RunFailure> {
    let queue = Measured::new("distinct")?;
    produce_and_consume(load, producers, consumers, &queue, &load::event(), done)
}

/// Measures rate limited adds that are forgotten when handled. The delay of the limiter is zero, so that the row measures the
/// limiter and the queue and not the delays; client-go's keys do not pass its delaying goroutine either.
pub(super) fn rate_limited(load: Load) -> Result<Measurement, RunFailure> {
    let limiter = ItemExponential::new(Duration::ZERO, Duration::from_secs(1));
    let queue = Measured::with(WorkQueue::builder("rate-limited").rate_limiter(limiter).build())?;
    produce_and_consume(load, 1, 1, &queue, &load::event().rate_limited(), forget)
}

fn done(item: Item<'_, Key>) {
    item.done();
}

fn forget(item: Item<'_, Key>) {
    item.forget();
}

/// Runs a task per producer, each over its own part of the keys, and a task per consumer. Shutting down after the last add
/// lets the consumers empty the queue and then end.
fn produce_and_consume(
    load: Load,
    producers: usize,
    consumers: usize,
    measured_queue: &Measured,
    options: &AddOptions,
    finish: fn(Item<'_, Key>),
) -> Result<Measurement, RunFailure> {
    let keys: Arc<[Key]> = load::keys(load.operations).into();
    let queue = &measured_queue.queue;
    let runtime = load::two_workers()?;
    let meter = Meter::start();
    let handled = runtime.block_on(async {
        let mut working = JoinSet::new();
        for _ in 0..consumers {
            let queue = queue.clone();
            working.spawn(async move {
                let mut handled = 0_u64;
                while let Some(item) = queue.get().await {
                    finish(item);
                    handled += 1;
                }
                handled
            });
        }
        let mut adding = JoinSet::new();
        for producer in 0..producers {
            let (queue, keys, options) = (queue.clone(), Arc::clone(&keys), options.clone());
            adding.spawn(async move {
                for key in &keys[load::part(keys.len(), producer, producers)] {
                    queue.add_with(Arc::clone(key), options.clone());
                }
            });
        }
        adding.join_all().await;
        queue.shutdown();
        working.join_all().await.into_iter().sum()
    });
    let measured = meter.stop(load.operations);
    expect_handled(handled, load)?;
    measured_queue.expect_adds(load.operations)?;
    Ok(measured)
}

/// Measures adds of all keys while all of them are queued. The caller passes the keys that the queue shares, as a cache does.
pub(super) fn duplicate(load: Load) -> Result<Measurement, RunFailure> {
    let keys = load::keys(load.operations);
    let (queue, event) = (filled(&keys)?, load::event());
    let meter = Meter::start();
    for key in &keys {
        queue.queue.add_with(Arc::clone(key), event.clone());
    }
    let measured = meter.stop(load.operations);
    expect_queued(&queue, keys.len())?;
    Ok(measured)
}

/// Measures adds of a few keys that are equal to the queued ones but allocated separately, as an event handler creates them.
pub(super) fn duplicate_hot(load: Load) -> Result<Measurement, RunFailure> {
    let (queue, event) = (filled(&load::keys(HOT_KEYS))?, load::event());
    let again = load::keys(HOT_KEYS);
    let mut next = again.iter().cycle();
    let meter = Meter::start();
    for key in next.by_ref().take(usize::try_from(load.operations)?) {
        queue.queue.add_with(Arc::clone(key), event.clone());
    }
    let measured = meter.stop(load.operations);
    expect_queued(&queue, again.len())?;
    Ok(measured)
}

fn filled(keys: &[Key]) -> Result<Measured, RunFailure> {
    let (queue, event) = (Measured::new("duplicate")?, load::event());
    for key in keys {
        queue.queue.add_with(Arc::clone(key), event.clone());
    }
    Ok(queue)
}

fn expect_queued(queue: &Measured, want: usize) -> Result<(), RunFailure> {
    match queue.queue.len() {
        queued if queued == want => queue.expect_adds(u64::try_from(want)?),
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
