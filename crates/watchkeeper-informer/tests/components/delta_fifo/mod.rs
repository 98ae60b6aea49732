//! The rules of the queue, one by one. Where client-go's two queues differ, the test names the rule that is used.

mod batches;
mod capacity;
mod closing;
mod deletions;
mod lists;
mod model;
mod order;
mod reference;
mod resyncs;
mod sync;
mod watermark;

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use watchkeeper_informer::{
    Cached,
    delta_fifo::{DeltaBatch, DeltaFifo, DeltaKind, Deltas, FifoOptions, KnownObjects, NothingKnown},
};

use crate::fifo_fixture::{self, label};

type Fifo = DeltaFifo<ConfigMap>;

/// A list without objects.
const EMPTY: Vec<Cached<ConfigMap>> = Vec::new();

/// A cache that the tests fill by hand or by applying what is popped.
#[derive(Clone, Default)]
struct Cache(Arc<Mutex<BTreeMap<String, Cached<ConfigMap>>>>);

impl Cache {
    fn with(objects: &[Cached<ConfigMap>]) -> Self {
        let cache = Self::default();
        for object in objects {
            cache.set(object);
        }
        cache
    }

    fn set(&self, object: &Cached<ConfigMap>) {
        self.0.lock().insert(key(object), object.clone());
    }

    fn apply(&self, popped: &DeltaBatch<ConfigMap>) {
        for deltas in popped.keys() {
            if deltas.newest().is_deletion() {
                self.0.lock().remove(&key(&deltas.newest().object));
            } else {
                self.set(&deltas.newest().object);
            }
        }
    }
}

impl KnownObjects<ConfigMap> for Cache {
    fn get(&self, key: &str) -> Option<Cached<ConfigMap>> {
        self.0.lock().get(key).cloned()
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&str)) {
        // As a store would: not under its lock.
        let keys: Vec<String> = self.0.lock().keys().cloned().collect();
        for key in &keys {
            visit(key);
        }
    }
}

fn key(object: &Cached<ConfigMap>) -> String {
    format!("space/{}", object.metadata().name())
}

fn fifo() -> Fifo {
    Fifo::new(NothingKnown, FifoOptions::new())
}

fn fifo_before(cache: &Cache) -> Fifo {
    Fifo::new(cache.clone(), FifoOptions::new())
}

/// Returns the batch that is ready now.
fn try_pop(fifo: &Fifo, max: usize) -> Option<DeltaBatch<ConfigMap>> {
    match pin!(fifo.pop_batch(max)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(popped) => Some(popped.expect("not closed")),
        Poll::Pending => None,
    }
}

/// The changes of one key, such as `added a@1, deleted a@2`; a `?` marks a final state that is not known, a
/// `!` what the first list brought.
fn describe(deltas: &Deltas<ConfigMap>) -> String {
    let described = deltas.iter().map(|delta| {
        let kind = match delta.kind {
            DeltaKind::Added => "added",
            DeltaKind::Updated => "updated",
            DeltaKind::Deleted { final_state_unknown: false } => "deleted",
            DeltaKind::Deleted { final_state_unknown: true } => "deleted?",
            DeltaKind::Replaced => "replaced",
            DeltaKind::Sync => "sync",
        };
        let initial = if delta.is_initial { "!" } else { "" };
        format!("{kind}{initial} {}", label(&delta.object))
    });
    described.collect::<Vec<_>>().join(", ")
}

/// Pops and finishes everything, key by key.
fn drain(fifo: &Fifo) -> Vec<String> {
    let mut described = Vec::new();
    while let Some(popped) = try_pop(fifo, 1) {
        described.extend(popped.keys().iter().map(describe));
        popped.done();
    }
    described
}
