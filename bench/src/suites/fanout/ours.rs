//! The side of the processor.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use watchkeeper_informer::event::Event;
use watchkeeper_informer::handler::HandlerOptions;
use watchkeeper_informer::internals::{Audience, Notification, Processor};

use super::load::{self, Cache, Changes, Counts, HANDLERS};
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

fn notification(event: Event<ConfigMap>) -> Notification<ConfigMap> {
    Notification { event, audience: Audience::All }
}

/// Publishes all events and waits until every handler has received each.
pub(super) fn fan_out(load: Load, step: u64) -> Result<Measurement, RunFailure> {
    let changes = Changes::new();
    let processor = Processor::<ConfigMap>::new(Duration::ZERO);
    let mut counts = Counts::default();
    let mut registrations = Vec::new();
    for _ in 0..HANDLERS {
        let count = counts.another();
        let handler = move |_: &Event<ConfigMap>| count.add(1);
        // Nothing may be left out, or the handlers would have less to do than the peer's.
        let options = HandlerOptions::new("counts").every_event();
        registrations.push(processor.lock().add(handler, options, None::<Vec<_>>)?);
    }
    let runtime = load::runtime()?;
    let meter = Meter::start();
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let running = processor.clone();
        tasks.spawn(async move { running.run().await });
        let publishing = processor.clone();
        tasks.spawn(async move {
            let mut next = 0;
            while next < load.operations {
                let end = load.operations.min(next + step);
                publishing.lock().publish((next..end).map(|number| notification(changes.event(number))));
                next = end;
                tokio::task::yield_now().await;
            }
            publishing.lock().mark_synced();
            for registration in &registrations {
                // A listener that ended early is found by the counts.
                let _ = registration.synced().await;
            }
            publishing.shutdown();
        });
        tasks.join_all().await;
    });
    let measured = meter.stop(load.operations);
    counts.expect(load)?;
    Ok(measured)
}

/// Publishes all events to a handler that is stuck in its first call, and measures the memory at the end.
pub(super) fn stalled(load: Load) -> Result<Measurement, RunFailure> {
    let mut cache = Cache::new();
    let runtime = load::runtime()?;
    runtime.block_on(async {
        let processor = Processor::<ConfigMap>::new(Duration::ZERO);
        let gate = Arc::new(Semaphore::new(0));
        let pass = Arc::clone(&gate);
        let handler = move |_: Event<ConfigMap>| {
            let pass = Arc::clone(&pass);
            async move { drop(pass.acquire().await) }
        };
        let options = HandlerOptions::new("stuck");
        let registration = processor.lock().add_async(handler, options, None::<Vec<_>>)?;
        let mut tasks = JoinSet::new();
        let running = processor.clone();
        tasks.spawn(async move { running.run().await });
        let before = heap::live_bytes();
        let meter = Meter::start();
        for number in 0..load.operations {
            processor.lock().publish([notification(cache.change(number))]);
            if number % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let measured = cache.held(meter.stop(load.operations), before);
        let pending = registration.status().map_or(0, |status| status.pending);
        gate.close();
        processor.shutdown();
        tasks.join_all().await;
        let fewest = load.operations.min(cache.objects.len() as u64);
        if pending < fewest {
            return Err(format!("{pending} keys pending, want at least {fewest}").into());
        }
        Ok(measured)
    })
}
