//! The memory of the objects of one informer: counters, and objects that turned out to be undecodable.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tracing::warn;

use super::{MemoryStats, pool::MemoryPool};
use crate::{Undecodable, reflector::Quarantined, sync::Mutex};

/// The counters of one informer, shared by its entries.
#[derive(Debug)]
pub(crate) struct ObjectMemory {
    informer: Arc<str>,
    pool: Arc<MemoryPool>,
    pub(super) counters: MemoryCounters,
    /// The objects that could not be decoded, by the addresses of their entries. Two entries may be of the same version, and
    /// the entry of a replaced version may be read as long as it is held.
    undecodable: Mutex<BTreeMap<usize, Quarantined>>,
    /// The reads at the last observation.
    observed: Mutex<Reads>,
}

/// A number of reads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reads {
    pub(super) decodes: u64,
    pub(super) decode_time: Duration,
    pub(super) hits: u64,
}

/// The counters behind [`MemoryStats`].
#[derive(Debug, Default)]
pub(super) struct MemoryCounters {
    encoded_objects: AtomicU64,
    encoded_bytes: AtomicU64,
    /// The memory that all objects would take decoded.
    decodable_bytes: AtomicU64,
    decoded_objects: AtomicU64,
    decoded_bytes: AtomicU64,
    decodes: AtomicU64,
    decode_nanos: AtomicU64,
    hits: AtomicU64,
    evictions: AtomicU64,
    /// The bytes that were compressed, before and after, since the dictionary was trained.
    plain_bytes: AtomicU64,
    compressed_bytes: AtomicU64,
    dictionaries: AtomicU64,
    /// The time of the last training in nanoseconds on the clock of the pool.
    trained_at: AtomicU64,
}

impl ObjectMemory {
    pub(crate) fn new(informer: Arc<str>, pool: Arc<MemoryPool>) -> Arc<Self> {
        let memory = Arc::new(Self {
            informer,
            pool,
            counters: MemoryCounters::default(),
            undecodable: Mutex::default(),
            observed: Mutex::default(),
        });
        memory.pool.register(&memory);
        memory
    }

    pub(crate) fn pool(&self) -> &Arc<MemoryPool> {
        &self.pool
    }

    pub(crate) fn informer(&self) -> &str {
        &self.informer
    }

    pub(crate) fn now(&self) -> Duration {
        self.pool.now()
    }

    pub(crate) fn entry_created(&self, encoded_bytes: usize, decodable_bytes: usize) {
        add(&self.counters.encoded_objects, 1);
        add(&self.counters.encoded_bytes, encoded_bytes);
        add(&self.counters.decodable_bytes, decodable_bytes);
    }

    pub(crate) fn entry_dropped(&self, entry: usize, encoded_bytes: usize, decodable_bytes: usize) {
        subtract(&self.counters.encoded_objects, 1);
        subtract(&self.counters.encoded_bytes, encoded_bytes);
        subtract(&self.counters.decodable_bytes, decodable_bytes);
        self.undecodable.lock().remove(&entry);
    }

    /// Returns an estimate of the memory that all objects would take decoded.
    pub(super) fn decodable_bytes(&self) -> u64 {
        self.counters.decodable_bytes.load(Relaxed)
    }

    pub(crate) fn compressed(&self, plain_bytes: usize, compressed_bytes: usize) {
        add(&self.counters.plain_bytes, plain_bytes);
        add(&self.counters.compressed_bytes, compressed_bytes);
    }

    /// Records that the bytes of an existing entry were compressed.
    pub(crate) fn recompressed(&self, plain_bytes: usize, compressed_bytes: usize) {
        self.compressed(plain_bytes, compressed_bytes);
        add(&self.counters.encoded_bytes, compressed_bytes);
        subtract(&self.counters.encoded_bytes, plain_bytes);
    }

    pub(crate) fn trained(&self) {
        add(&self.counters.dictionaries, 1);
        self.counters.plain_bytes.store(0, Relaxed);
        self.counters.compressed_bytes.store(0, Relaxed);
        self.counters.trained_at.store(nanos(self.now()), Relaxed);
    }

    pub(crate) fn became_resident(&self, bytes: usize) {
        add(&self.counters.decoded_objects, 1);
        add(&self.counters.decoded_bytes, bytes);
    }

    pub(crate) fn left_residence(&self, bytes: usize) {
        subtract(&self.counters.decoded_objects, 1);
        subtract(&self.counters.decoded_bytes, bytes);
    }

    pub(crate) fn evicted(&self) {
        add(&self.counters.evictions, 1);
    }

    pub(crate) fn hit(&self) {
        add(&self.counters.hits, 1);
    }

    /// Records a decode that started at `started`.
    pub(crate) fn decoded(&self, started: Duration) {
        let now = self.now();
        add(&self.counters.decodes, 1);
        self.counters.decode_nanos.fetch_add(nanos(now.saturating_sub(started)), Relaxed);
        self.pool.observe(now);
    }

    /// Returns the reads since the previous call.
    pub(super) fn take_reads(&self) -> Reads {
        let mut observed = self.observed.lock();
        // Read under the lock, so that the totals of two concurrent calls are in order.
        let total = self.reads();
        let before = std::mem::replace(&mut *observed, total);
        Reads {
            decodes: total.decodes - before.decodes,
            decode_time: total.decode_time.saturating_sub(before.decode_time),
            hits: total.hits - before.hits,
        }
    }

    fn reads(&self) -> Reads {
        let MemoryCounters { decodes, decode_nanos, hits, .. } = &self.counters;
        Reads {
            decodes: decodes.load(Relaxed),
            decode_time: Duration::from_nanos(decode_nanos.load(Relaxed)),
            hits: hits.load(Relaxed),
        }
    }

    /// Reports that the object of the entry with this address cannot be decoded, until the entry is dropped.
    pub(crate) fn quarantine(&self, entry: usize, error: &Undecodable) {
        let object = Quarantined {
            key: Arc::clone(&error.key),
            resource_version: error.resource_version.clone(),
            cause: error.cause,
            error: Arc::clone(&error.reason),
        };
        let before = self.undecodable.lock().insert(entry, object);
        if before.is_none() {
            let (key, version) = (&*error.key, error.resource_version.as_deref());
            warn!(informer = &*self.informer, key, version, error = &*error.reason, "object quarantined");
        }
    }

    /// Returns the objects that were found to be undecodable when they were read, sorted by key. Replaced versions that are
    /// still held are included.
    pub(crate) fn quarantined(&self) -> Vec<Quarantined> {
        let mut objects: Vec<Quarantined> = self.undecodable.lock().values().cloned().collect();
        objects.sort_by(|one, other| {
            (&one.key, &one.resource_version).cmp(&(&other.key, &other.resource_version))
        });
        objects.dedup_by(|one, other| one.key == other.key && one.resource_version == other.resource_version);
        objects
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &self.counters;
        let dictionaries = read(&counters.dictionaries);
        let trained_at = Duration::from_nanos(read(&counters.trained_at));
        MemoryStats {
            encoded_objects: read(&counters.encoded_objects),
            encoded_bytes: read(&counters.encoded_bytes),
            decoded_objects: read(&counters.decoded_objects),
            decoded_bytes: read(&counters.decoded_bytes),
            budget_bytes: self.pool.budget(),
            decodes: read(&counters.decodes),
            decode_time: Duration::from_nanos(read(&counters.decode_nanos)),
            hits: read(&counters.hits),
            evictions: read(&counters.evictions),
            plain_bytes: read(&counters.plain_bytes),
            compressed_bytes: read(&counters.compressed_bytes),
            dictionaries,
            dictionary_age: (dictionaries > 0).then(|| self.now().saturating_sub(trained_at)),
        }
    }
}

fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Relaxed);
}

fn subtract(counter: &AtomicU64, amount: usize) {
    counter.fetch_sub(amount as u64, Relaxed);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
