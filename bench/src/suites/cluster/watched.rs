//! An informer with a handler that counts, and the phases of its life.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use watchkeeper_informer::event::Event;
use watchkeeper_informer::handler::Registration;
use watchkeeper_informer::{Object, ResourceVersion, SharedIndexInformer, SharedInformerFactory};

use super::types::Look;
use crate::clock;
use crate::machine::as_f64;
use crate::replay::ReplayServer;
use crate::suite::RunFailure;

/// The interval at which progress is checked. A check costs a few microseconds.
const CHECKED_EVERY: Duration = Duration::from_millis(10);
const PHASE_LIMIT: Duration = Duration::from_mins(10);

/// The states of an event that a handler reads beside its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Key,
    New,
    Both,
}

/// Counters of the events that the handler has received.
#[derive(Debug, Default)]
struct Received {
    reads: AtomicU8,
    events: AtomicU64,
    undecodable: AtomicU64,
    newest: AtomicU64,
    sum: AtomicU64,
}

impl Received {
    fn observe<K: Object + Look>(&self, event: &Event<K>) {
        let metadata = event.object().metadata();
        let key = metadata.namespace().map_or(0, str::len) + metadata.name().len();
        let version = metadata.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0);
        let mut sum = key;
        if let Event::Updated { old, new } = event {
            let reads = self.reads.load(Relaxed);
            let read = [(Reads::Both, old), (Reads::New, new)];
            for (_, object) in read.into_iter().filter(|(least, _)| match least {
                Reads::Both => reads == Reads::Both as u8,
                _ => reads != Reads::Key as u8,
            }) {
                match object.get() {
                    Ok(object) => sum += object.look(),
                    Err(_) => _ = self.undecodable.fetch_add(1, Relaxed),
                }
            }
        }
        self.sum.fetch_add(sum as u64, Relaxed);
        self.newest.fetch_max(version, Relaxed);
        self.events.fetch_add(1, Relaxed);
    }
}

/// An informer of a server, with its handler.
pub(super) struct Watched<K: Object> {
    pub(super) server: ReplayServer,
    pub(super) factory: SharedInformerFactory,
    pub(super) informer: SharedIndexInformer<K>,
    handler: Registration<K>,
    received: Arc<Received>,
}

/// The cost of a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    /// The CPU time per change in microseconds.
    pub(super) cpu_us: f64,
    /// The number of events that the handler received. States that were superseded while it lagged are not delivered.
    pub(super) delivered: u64,
}

impl<K: Object + Look> Watched<K> {
    /// Adds the handler. Nothing is requested before [`synced`](Self::synced).
    pub(super) fn new(
        server: ReplayServer,
        factory: SharedInformerFactory,
        informer: SharedIndexInformer<K>,
    ) -> Result<Self, RunFailure> {
        let received = Arc::new(Received::default());
        let of_handler = Arc::clone(&received);
        let handler = informer.add_handler(move |event: &Event<K>| of_handler.observe(event))?;
        Ok(Self { server, factory, informer, handler, received })
    }

    /// Starts the informer and waits until the handler has been called for every pod.
    pub(super) async fn synced(&self, pods: u64) -> Result<(), RunFailure> {
        self.factory.start();
        self.informer.wait_for_sync(None).await?;
        self.handler.synced().await?;
        self.check(pods)?;
        expect("events", self.received.events.load(Relaxed), pods)
    }

    /// Fails unless this many pods are in the cache and all of them were decodable.
    pub(super) fn check(&self, pods: u64) -> Result<(), RunFailure> {
        expect("undecodable", self.received.undecodable.load(Relaxed), 0)?;
        expect("stored", self.informer.snapshot().len() as u64, pods)
    }

    pub(super) fn read(&self, reads: Reads) {
        self.received.reads.store(reads as u8, Relaxed);
    }

    /// Gives an order of `count` changes, and waits until the handler has processed them.
    pub(super) async fn changed(&self, order: &str, count: u64) -> Result<Phase, RunFailure> {
        let before = self.received.events.load(Relaxed);
        let cpu = clock::process_cpu();
        let last: u64 = self.server.order(order).await?.resource_version.parse()?;
        let is_done = || {
            self.received.newest.load(Relaxed) >= last
                && self.handler.status().is_none_or(|status| status.pending == 0)
        };
        timeout(PHASE_LIMIT, async {
            while !is_done() {
                sleep(CHECKED_EVERY).await;
            }
        })
        .await?;
        Ok(Phase {
            cpu_us: as_us(clock::process_cpu().saturating_sub(cpu), count),
            delivered: self.received.events.load(Relaxed) - before,
        })
    }

    /// Expires the watch, and waits until the collection has been listed again. Returns the CPU time per pod.
    pub(super) async fn relisted(&self, pods: u64) -> Result<f64, RunFailure> {
        let cpu = clock::process_cpu();
        let version = self.server.order("/expire").await?.resource_version;
        let version = ResourceVersion::new(&version).ok_or("the server sent no version")?;
        timeout(PHASE_LIMIT, self.informer.wait_until(&version)).await??;
        Ok(as_us(clock::process_cpu().saturating_sub(cpu), pods))
    }
}

/// Returns the microseconds per operation.
pub(super) fn as_us(spent: Duration, operations: u64) -> f64 {
    spent.as_secs_f64() * 1e6 / as_f64(operations.max(1))
}

/// Fails unless a count is right, because the sides would not be comparable.
pub(super) fn expect(what: &str, found: u64, wanted: u64) -> Result<(), RunFailure> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found} pods, want {wanted}").into()) }
}
