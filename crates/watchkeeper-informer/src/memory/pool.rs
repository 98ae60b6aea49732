//! The budget of decoded objects, shared by the informers of a factory.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tracing::{debug, warn};
use watchkeeper_time::{Clock, TokioClock};

use super::{
    MemoryPolicy, ObjectMemory,
    budget::{AutoBudget, AutoOptions, Decision, Ledger, Observation},
    limit::{MemoryAmount, ProcessMemory},
    residency::{Account, Charge, Residency, Resident},
};
use crate::sync::Mutex;

/// The kind of a read, which decides whether a decoded object becomes resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// A read of one object. The object becomes resident, and others are evicted if necessary.
    ByKey,
    /// A read of one object among many, as in a list. The object becomes resident if it fits into the budget.
    Scan,
    /// A read for a computation, such as an index. The object does not become resident.
    Transient,
}

/// An entry whose decoded object can be dropped.
pub(crate) trait Evict: Resident + Send + Sync {
    /// Drops the decoded object.
    fn evict(&self);
}

/// The number of entries that are evicted under one lock after an admission.
const EVICTIONS_PER_ADMISSION: usize = 2;

/// The number of entries that are evicted under one lock when the budget becomes smaller.
const EVICTIONS_PER_LOCK: usize = 64;

/// The time between two observations of the reads.
const OBSERVATION_PERIOD: Duration = Duration::from_secs(5);

/// The share of its memory limit below which a process stays under [`MemoryPolicy::Auto`], in percent.
const CEILING_PERCENT: u8 = 75;

/// The budgets of all pools of this process, because they share its memory.
static LEDGER: LazyLock<Arc<Ledger>> = LazyLock::new(Ledger::new);

/// The source of the memory figures of the process.
type ReadMemory = Box<dyn Fn() -> ProcessMemory + Send + Sync>;

/// The budget and the resident objects of several informers.
///
/// Reads of resident objects do not lock the pool. Reads that decode lock it once, to admit the object.
pub(crate) struct MemoryPool {
    policy: MemoryPolicy,
    clock: Arc<dyn Clock>,
    residency: Mutex<Residency<dyn Evict>>,
    account: Arc<Account>,
    /// The budget, as read without the lock.
    budget: AtomicUsize,
    informers: Mutex<Vec<Weak<ObjectMemory>>>,
    auto: Option<Mutex<AutoBudget>>,
    read_memory: ReadMemory,
    /// The time of the next observation, in nanoseconds. `u64::MAX` for never.
    observe_at: AtomicU64,
}

impl MemoryPool {
    pub(crate) fn new(policy: MemoryPolicy) -> Arc<Self> {
        let read_memory = Box::new(|| ProcessMemory::read(Path::new("/")));
        Self::with(policy, Arc::new(TokioClock::new()), &LEDGER, read_memory)
    }

    fn with(
        policy: MemoryPolicy,
        clock: Arc<dyn Clock>,
        ledger: &Arc<Ledger>,
        read_memory: ReadMemory,
    ) -> Arc<Self> {
        let share = |percent| MemoryAmount::Percent(percent).bytes(read_memory().limit());
        let budget = match policy {
            MemoryPolicy::Auto => MemoryPolicy::AUTO_BASE_BYTES,
            MemoryPolicy::Budget(bytes) => bytes,
            MemoryPolicy::Share(percent) => share(percent).unwrap_or(MemoryPolicy::AUTO_BASE_BYTES),
            MemoryPolicy::Packed => 0,
            MemoryPolicy::Decoded => u64::MAX,
        };
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        let options = AutoOptions { base: MemoryPolicy::AUTO_BASE_BYTES, ..AutoOptions::default() };
        let auto =
            (policy == MemoryPolicy::Auto).then(|| Mutex::new(AutoBudget::new(options, ledger, clock.now())));
        let observe_at = if auto.is_some() { nanos(clock.now() + OBSERVATION_PERIOD) } else { u64::MAX };
        let residency = Residency::new(budget);
        let account = Arc::clone(residency.account());
        Arc::new(Self {
            policy,
            clock,
            residency: Mutex::new(residency),
            account,
            budget: AtomicUsize::new(budget),
            informers: Mutex::default(),
            auto,
            read_memory,
            observe_at: AtomicU64::new(observe_at),
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

    /// Returns the estimated memory of the resident objects of all informers.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.account.bytes() as u64
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

    /// Evicts entries until the budget is kept. A large object may displace many small ones.
    pub(crate) fn evict(&self) {
        if self.account.bytes() > self.budget.load(Relaxed) {
            self.evict_to_budget(EVICTIONS_PER_ADMISSION);
        }
    }

    /// Evicts entries until the budget is kept, a number of them under each lock.
    fn evict_to_budget(&self, per_lock: usize) {
        loop {
            let (evictions, is_over_budget) = {
                let mut residency = self.residency.lock();
                (residency.evictions(per_lock), residency.is_over_budget())
            };
            for entry in &evictions.victims {
                entry.evict();
            }
            if !is_over_budget {
                return;
            }
        }
    }

    /// Adjusts the budget to the reads, at most once in each period. Called after reads and for received objects.
    pub(crate) fn observe(&self, now: Duration) {
        let due = self.observe_at.load(Relaxed);
        if nanos(now) < due {
            return;
        }
        let next = nanos(now.saturating_add(OBSERVATION_PERIOD));
        let is_first = self.observe_at.compare_exchange(due, next, Relaxed, Relaxed).is_ok();
        if let Some(auto) = self.auto.as_ref().filter(|_| is_first) {
            self.adjust(auto, now);
        }
    }

    fn adjust(&self, auto: &Mutex<AutoBudget>, now: Duration) {
        let memory = (self.read_memory)();
        let informers: Vec<_> = self.informers.lock().iter().filter_map(Weak::upgrade).collect();
        let reads: Vec<_> = informers.iter().map(|informer| informer.take_reads()).collect();
        let observation = Observation {
            decodes: reads.iter().map(|reads| reads.decodes).sum(),
            decode_time: reads.iter().map(|reads| reads.decode_time).sum(),
            hits: reads.iter().map(|reads| reads.hits).sum(),
            decoded_bytes: self.decoded_bytes(),
            wanted_bytes: informers.iter().map(|informer| informer.decodable_bytes()).sum(),
            resident: memory.resident,
            ceiling: memory.ceiling(CEILING_PERCENT),
        };
        let Decision { budget, pressure } = auto.lock().observe(now, &observation);
        let before = self.budget();
        if budget != before {
            debug!(before, budget, decodes = observation.decodes, "memory budget changed");
            self.set_budget(usize::try_from(budget).unwrap_or(usize::MAX));
        }
        if let Some(pressure) = pressure {
            let busiest = informers.iter().zip(&reads).max_by_key(|(_, reads)| reads.decode_time);
            let informer = busiest.map_or("", |(informer, _)| informer.informer());
            warn!(
                informer,
                decodes_per_second = pressure.decodes_per_second,
                core_share = pressure.core_share,
                budget_bytes = pressure.budget,
                wanted_bytes = pressure.wanted_bytes,
                "reads decode objects often, and memory is too scarce to keep them decoded; read by an index, \
                 cache a narrow type or metadata only, or raise the memory limit"
            );
        }
    }

    /// Returns the bytes of the objects that are kept decoded.
    pub(super) fn charged_bytes(&self) -> usize {
        self.account.bytes()
    }

    pub(super) fn set_budget(&self, bytes: usize) {
        self.residency.lock().set_budget(bytes);
        self.budget.store(bytes, Relaxed);
        self.evict_to_budget(EVICTIONS_PER_LOCK);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPool")
            .field("policy", &self.policy)
            .field("budget", &self.budget)
            .field("decoded_bytes", &self.decoded_bytes())
            .finish_non_exhaustive()
    }
}
