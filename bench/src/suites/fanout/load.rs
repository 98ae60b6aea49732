//! The events that both sides publish, and their counters.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::runtime::{Builder, Runtime};
use watchkeeper_informer::event::Event;

use crate::heap;
use crate::machine::as_f64;
use crate::measure::Measurement;
use crate::suite::{Load, RunFailure};

pub(super) const HANDLERS: usize = 10;
pub(super) const HELD: &str = "held_of_cache";
const KEYS: u64 = 50_000;

/// A version of an object.
pub(super) fn object(key: u64, version: u64) -> Arc<ConfigMap> {
    let metadata = ObjectMeta {
        namespace: Some(format!("namespace-{:03}", key % 1000)),
        name: Some(format!("config-map-{key:08}")),
        uid: Some(format!("00000000-0000-0000-0000-{key:012}")),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    };
    let data = [("settings".to_owned(), "x".repeat(200))].into();
    Arc::new(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })
}

/// Changes of 50,000 objects in turn, between two versions that are created beforehand: the timed part is the delivery of
/// events, not the creation of objects.
pub(super) struct Changes {
    versions: [Vec<Arc<ConfigMap>>; 2],
}

impl Changes {
    pub(super) fn new() -> Self {
        Self { versions: [0, 1].map(|version| (0..KEYS).map(|key| object(key, version)).collect()) }
    }

    /// The change with this number.
    pub(super) fn event(&self, number: u64) -> Event<ConfigMap> {
        let (round, key) = (number / KEYS, usize::try_from(number % KEYS).unwrap_or_default());
        let [old, new] = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        Event::Updated {
            old: Arc::clone(&self.versions[old][key]).into(),
            new: Arc::clone(&self.versions[new][key]).into(),
        }
    }
}

/// The cache of the stalled rows, with the bytes it takes.
pub(super) struct Cache {
    pub(super) objects: Vec<Arc<ConfigMap>>,
    bytes: u64,
}

impl Cache {
    pub(super) fn new() -> Self {
        let before = heap::live_bytes();
        let objects = (0..KEYS).map(|key| object(key, 0)).collect();
        Self { objects, bytes: heap::live_bytes() - before }
    }

    /// Stores the next version of an object, and returns the change.
    pub(super) fn change(&mut self, number: u64) -> Event<ConfigMap> {
        let key = number % KEYS;
        let new = object(key, number + 1);
        let cached = &mut self.objects[usize::try_from(key).unwrap_or_default()];
        let old = std::mem::replace(cached, Arc::clone(&new));
        Event::Updated { old: old.into(), new: new.into() }
    }

    /// Adds the live heap in addition to `before` bytes, which include the cache.
    pub(super) fn held(&self, measured: Measurement, before: u64) -> Measurement {
        let held = heap::live_bytes().saturating_sub(before);
        let megabytes = |bytes: u64| as_f64(bytes) / 1e6;
        measured
            .with_figure(HELD, as_f64(held) / as_f64(self.bytes))
            .with_figure("held_mb", megabytes(held))
            .with_figure("cache_mb", megabytes(self.bytes))
    }
}

/// The number of events that each handler received.
#[derive(Default)]
pub(super) struct Counts(Vec<Arc<Count>>);

/// A counter on a separate cache line, like the state of a handler.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, events: u64) {
        // One handler writes it.
        self.0.store(self.0.load(Relaxed) + events, Relaxed);
    }
}

impl Counts {
    pub(super) fn another(&mut self) -> Arc<Count> {
        let count = Arc::new(Count::default());
        self.0.push(Arc::clone(&count));
        count
    }

    pub(super) fn expect(&self, load: Load) -> Result<(), RunFailure> {
        let counts: Vec<u64> = self.0.iter().map(|count| count.0.load(Relaxed)).collect();
        if counts.len() == HANDLERS && counts.iter().all(|&count| count == load.operations) {
            Ok(())
        } else {
            Err(format!("handlers were told of {counts:?} events, want {} each", load.operations).into())
        }
    }
}

/// Two workers, as in the other suites, and the same everywhere.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_time().build()
}
