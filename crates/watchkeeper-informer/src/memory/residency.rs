//! Which objects of a cache stay decoded.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use crate::sync::Mutex;

mod slots;

use self::slots::{List, Slots};

/// The share of the budget for objects on probation: an eighth.
const PROBATION_SHARE: usize = 8;

/// The number of entries that one call examines for each eviction that it may return. An entry is examined again only
/// after it was read again, so this limits calls that compete with readers.
const STEPS_PER_EVICTION: usize = 16;

/// The reads of an entry, as its [`Residency`] needs them. A part of the entry.
#[derive(Debug, Default)]
pub(crate) struct Residence {
    is_referenced: AtomicBool,
    /// The number of evictions when the entry last left the probation, plus one. 0 if it never did.
    left_probation: AtomicU64,
}

impl Residence {
    /// Records a read of the decoded object. Costs a load, and a store for the first read since the last check.
    pub(crate) fn mark_read(&self) {
        if !self.is_referenced.load(Ordering::Relaxed) {
            self.is_referenced.store(true, Ordering::Relaxed);
        }
    }

    fn take_referenced(&self) -> bool {
        self.is_referenced.load(Ordering::Relaxed) && self.is_referenced.swap(false, Ordering::Relaxed)
    }
}

/// An entry of a cache whose object is kept decoded or packed.
pub(crate) trait Resident {
    /// Returns the part of the entry that records its reads.
    fn residence(&self) -> &Residence;
}

/// The share of the budget that one decoded object takes. It ends when the charge is dropped.
///
/// An entry stores the charge beside its decoded object, under the same lock: whatever ends the one ends the other, be
/// it an eviction, an update or the end of the entry.
#[must_use = "dropping the charge releases its bytes"]
pub(crate) struct Charge {
    account: Arc<Account>,
    slot: u32,
    bytes: usize,
}

impl Charge {
    /// Returns the bytes that are charged.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.objects.fetch_sub(1, Ordering::Relaxed);
        self.account.released.lock().push(self.slot);
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The entries that one call of [`Residency::evictions`] examined, to be dropped without its lock: each may be the last
/// reference to an entry, whose object runs user code on drop.
pub(crate) struct Evictions<E: ?Sized> {
    /// The entries whose decoded objects are to be dropped.
    pub(crate) victims: Vec<Arc<E>>,
    /// The entries that were passed over.
    _passed: Vec<Arc<E>>,
}

/// The sums of all charges. They are exact at any time, and read without a lock.
#[derive(Debug, Default)]
pub(crate) struct Account {
    bytes: AtomicUsize,
    objects: AtomicUsize,
    /// The slots of charges that ended since the last call of the residency.
    released: Mutex<Vec<u32>>,
}

impl Account {
    /// Returns the bytes of all objects that are kept decoded.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of objects that are kept decoded.
    #[cfg(test)]
    pub(crate) fn objects(&self) -> usize {
        self.objects.load(Ordering::Relaxed)
    }
}

/// Decides which objects of a cache stay decoded, within a budget of bytes.
///
/// The order is that of the S3-FIFO and CLOCK algorithms, in two lists:
///
/// - An object that is decoded for a read is on **probation**. When the budget is exceeded, the oldest objects on
///   probation are evicted first, as long as they have more than an eighth of the budget. An object that was read again
///   meanwhile becomes a main object instead. Reading every object of the cache once therefore displaces probation
///   only.
/// - **Main** objects are evicted in the order of a clock: one that was read since the clock hand passed is passed again.
/// - An object that is read again soon after it left the probation becomes a main object at once. "Soon" is fewer
///   evictions than main objects.
///
/// # How entries use it
///
/// 1. A read of a decoded object calls [`Residence::mark_read`], without a lock.
/// 2. A read of a packed object decodes it without a lock, calls [`admit`](Self::admit), and stores the object with its
///    [`Charge`] in the entry. It may hold the lock of the entry while it calls `admit`.
/// 3. After an admission, and after the budget became smaller, the caller takes [`evictions`](Self::evictions),
///    releases the lock of the residency, and drops the decoded object of each of them. It repeats this while
///    [`is_over_budget`](Self::is_over_budget), because one object may be as large as many others together.
///
/// An entry that is replaced or removed needs no call: dropping its charge releases its bytes.
///
/// All methods take amortized constant time.
pub(crate) struct Residency<E: ?Sized> {
    budget: usize,
    account: Arc<Account>,
    slots: Slots<Weak<E>>,
    /// The number of evictions so far.
    evicted: u64,
}

impl<E: Resident + ?Sized> Residency<E> {
    /// Returns a residency without objects, with a budget in bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, account: Arc::default(), slots: Slots::default(), evicted: 0 }
    }

    /// Returns the sums of all charges.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Returns the budget in bytes.
    #[cfg(test)]
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// Returns how many objects were evicted so far.
    #[cfg(test)]
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Changes the budget. If it becomes smaller, the caller takes [`evictions`](Self::evictions).
    pub(crate) fn set_budget(&mut self, bytes: usize) {
        self.budget = bytes;
    }

    /// Admits an object of `bytes` that was decoded for a read. Returns `None` if it alone exceeds the budget: the
    /// entry then stays packed.
    pub(crate) fn admit(&mut self, entry: &Arc<E>, bytes: usize) -> Option<Charge> {
        self.release();
        if bytes > self.budget {
            return None;
        }
        let residence = entry.residence();
        residence.take_referenced();
        let left = residence.left_probation.load(Ordering::Relaxed);
        let main = self.slots.len(List::Main) as u64;
        let is_main = left != 0 && self.evicted.saturating_sub(left - 1) < main;
        let list = if is_main { List::Main } else { List::Probation };
        let slot = self.slots.insert(list, Arc::downgrade(entry), bytes)?;
        self.account.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.account.objects.fetch_add(1, Ordering::Relaxed);
        Some(Charge { account: Arc::clone(&self.account), slot, bytes })
    }

    /// Returns at most `limit` entries whose decoded objects are to be dropped, as far as the budget is exceeded.
    ///
    /// The entries no longer count towards the budget in this method, so calls return different entries. The bytes of
    /// the account fall when their charges are dropped.
    ///
    /// A call examines at most sixteen entries for each eviction of the limit. The budget can therefore still be
    /// exceeded after a call that returned less than the limit; [`is_over_budget`](Self::is_over_budget) shows it.
    pub(crate) fn evictions(&mut self, limit: usize) -> Evictions<E> {
        self.release();
        let (mut victims, mut passed) = (Vec::new(), Vec::new());
        let mut steps = limit.saturating_mul(STEPS_PER_EVICTION);
        while self.kept_bytes() > self.budget && victims.len() < limit && steps > 0 {
            steps -= 1;
            let is_probation = self.slots.len(List::Main) == 0
                || self.slots.bytes(List::Probation) > self.budget / PROBATION_SHARE;
            let list = if is_probation { List::Probation } else { List::Main };
            let Some((slot, entry)) = self.slots.front(list) else { break };
            // An entry that ended releases its slot soon.
            let Some(entry) = entry.upgrade() else {
                self.slots.move_to(slot, List::Detached);
                continue;
            };
            let residence = entry.residence();
            if residence.take_referenced() {
                self.slots.move_to(slot, List::Main);
                passed.push(entry);
                continue;
            }
            self.slots.move_to(slot, List::Detached);
            self.evicted += 1;
            if is_probation {
                residence.left_probation.store(self.evicted, Ordering::Relaxed);
            }
            victims.push(entry);
        }
        Evictions { victims, _passed: passed }
    }

    /// Returns whether more objects have to be evicted than those that were selected.
    pub(crate) fn is_over_budget(&mut self) -> bool {
        self.release();
        self.kept_bytes() > self.budget
    }

    /// Returns the bytes of objects that were not selected for eviction.
    fn kept_bytes(&self) -> usize {
        self.slots.bytes(List::Probation) + self.slots.bytes(List::Main)
    }

    /// Frees the slots of charges that ended.
    fn release(&mut self) {
        let released = std::mem::take(&mut *self.account.released.lock());
        for slot in released {
            self.slots.remove(slot);
        }
    }
}

impl<E: ?Sized> fmt::Debug for Residency<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Residency")
            .field("budget", &self.budget)
            .field("account", &self.account)
            .field("evicted", &self.evicted)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
