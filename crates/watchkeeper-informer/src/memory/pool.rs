//! The budget of decoded objects, shared by the informers of a factory.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use watchkeeper_time::{Clock, TokioClock};

use super::{
    MemoryPolicy, ObjectMemory,
    residency::{Account, Charge, Residency, Resident},
};
use crate::sync::Mutex;

/// The kind of a read, which decides whether a decoded object becomes resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// A read of one object. The object becomes resident, and others are evicted if necessary.
    ByKey,
    /// One of the reads of a scan. The object becomes resident if there is room.
    Scan,
    /// A read for a computation, such as an index. The object does not become resident.
    Transient,
}

/// An entry whose decoded object can be dropped.
pub(crate) trait Evict: Resident + Send + Sync {
    /// Drops the decoded object.
    fn evict(&self);
}

/// The number of entries that are evicted after an admission. Two, so that a smaller budget is reached soon.
const EVICTIONS_PER_ADMISSION: usize = 2;

/// The budget and the resident objects of several informers.
pub(crate) struct MemoryPool {
    policy: MemoryPolicy,
    clock: Arc<dyn Clock>,
    residency: Mutex<Residency<dyn Evict>>,
    account: Arc<Account>,
    /// The budget, as read without the lock.
    budget: AtomicUsize,
    informers: Mutex<Vec<Weak<ObjectMemory>>>,
    /// The time of the next observation, in nanoseconds.
    observe_at: AtomicU64,
}

impl MemoryPool {
    pub(crate) fn new(policy: MemoryPolicy) -> Arc<Self> {
        Self::with_clock(policy, Arc::new(TokioClock::new()))
    }

    pub(crate) fn with_clock(policy: MemoryPolicy, clock: Arc<dyn Clock>) -> Arc<Self> {
        let budget = match policy {
            MemoryPolicy::Auto => MemoryPolicy::AUTO_BASE_BYTES,
            MemoryPolicy::Budget(bytes) => bytes,
            MemoryPolicy::Packed => 0,
            MemoryPolicy::Decoded => u64::MAX,
        };
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        let residency = Residency::new(budget);
        let account = Arc::clone(residency.account());
        Arc::new(Self {
            policy,
            clock,
            residency: Mutex::new(residency),
            account,
            budget: AtomicUsize::new(budget),
            informers: Mutex::default(),
            observe_at: AtomicU64::new(0),
        })
    }

    pub(crate) fn policy(&self) -> MemoryPolicy {
        self.policy
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(crate) fn budget(&self) -> u64 {
        self.budget.load(Relaxed) as u64
    }

    /// Adds an informer whose reads are observed.
    pub(super) fn register(&self, memory: &Arc<ObjectMemory>) {
        let mut informers = self.informers.lock();
        informers.retain(|informer| informer.strong_count() > 0);
        informers.push(Arc::downgrade(memory));
    }

    /// Returns whether an object of this size may become resident after such a read.
    pub(crate) fn accepts(&self, bytes: usize, read: Read) -> bool {
        let budget = self.budget.load(Relaxed);
        match read {
            Read::ByKey => bytes <= budget,
            Read::Scan => self.account.bytes().saturating_add(bytes) <= budget,
            Read::Transient => false,
        }
    }

    /// Admits an object. `None` if it exceeds the budget. The caller stores the charge beside the decoded object, and then
    /// calls [`evict`](Self::evict) without a lock.
    pub(crate) fn admit(&self, entry: &Arc<dyn Evict>, bytes: usize) -> Option<Charge> {
        self.residency.lock().admit(entry, bytes)
    }

    /// Evicts a few entries, if the budget is exceeded.
    pub(crate) fn evict(&self) {
        if self.account.bytes() <= self.budget.load(Relaxed) {
            return;
        }
        let victims = self.residency.lock().evictions(EVICTIONS_PER_ADMISSION);
        for entry in victims {
            entry.evict();
        }
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPool")
            .field("policy", &self.policy)
            .field("budget", &self.budget)
            .field("decoded_bytes", &self.account.bytes())
            .finish_non_exhaustive()
    }
}
