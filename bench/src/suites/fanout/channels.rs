//! The channels' side.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;
use watchkeeper_informer::event::Event;

use super::load::{self, Cache, Changes, Counts, HANDLERS};
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

type Sender = UnboundedSender<Arc<Event<ConfigMap>>>;

/// The maximum number of events that are received at once.
const AT_ONCE: usize = 1_024;

/// Sends all events and waits until every handler has received each.
pub(super) fn fan_out(load: Load, step: u64) -> Result<Measurement, RunFailure> {
    let changes = Changes::new();
    let mut counts = Counts::default();
    let runtime = load::runtime()?;
    let meter = Meter::start();
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let mut senders: Vec<Sender> = Vec::new();
        for _ in 0..HANDLERS {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            senders.push(sender);
            let count = counts.another();
            tasks.spawn(async move {
                let mut events = Vec::with_capacity(AT_ONCE);
                while receiver.recv_many(&mut events, AT_ONCE).await > 0 {
                    for _event in events.drain(..) {
                        count.add(1);
                    }
                }
            });
        }
        tasks.spawn(async move {
            let mut next = 0;
            while next < load.operations {
                let end = load.operations.min(next + step);
                for number in next..end {
                    send(&senders, changes.event(number));
                }
                next = end;
                tokio::task::yield_now().await;
            }
        });
        tasks.join_all().await;
    });
    let measured = meter.stop(load.operations);
    counts.expect(load)?;
    Ok(measured)
}

fn send(senders: &[Sender], event: Event<ConfigMap>) {
    let event = Arc::new(event);
    for sender in senders {
        // A handler that ended early is detected by its count.
        let _ = sender.send(Arc::clone(&event));
    }
}

/// Sends all events to a handler that receives none, and measures the memory at the end.
pub(super) fn stalled(load: Load) -> Result<Measurement, RunFailure> {
    let mut cache = Cache::new();
    let (sender, receiver) = mpsc::unbounded_channel();
    let senders = [sender];
    let before = heap::live_bytes();
    let meter = Meter::start();
    for number in 0..load.operations {
        send(&senders, cache.change(number));
    }
    let measured = cache.held(meter.stop(load.operations), before);
    let pending = receiver.len() as u64;
    if pending != load.operations {
        return Err(format!("{pending} events pending, want {}", load.operations).into());
    }
    Ok(measured)
}
