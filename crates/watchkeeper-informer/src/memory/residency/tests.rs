use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// An entry of a cache: the charge is present while the object is decoded.
#[derive(Default)]
struct Entry {
    residence: Residence,
    decoded: Mutex<Option<Charge>>,
}

impl Resident for Entry {
    fn residence(&self) -> &Residence {
        &self.residence
    }
}

fn drop_decoded(victims: &[Arc<Entry>]) {
    for entry in victims {
        *entry.decoded.lock() = None;
    }
}

/// A cache of entries of the same size.
struct Cache {
    residency: Residency<Entry>,
    entries: Vec<Arc<Entry>>,
    entry_bytes: usize,
}

impl Cache {
    fn new(entries: usize, entry_bytes: usize, budget: usize) -> Self {
        let entries = (0..entries).map(|_| Arc::default()).collect();
        Self { residency: Residency::new(budget), entries, entry_bytes }
    }

    /// Reads an entry, as caches do, and returns whether it was decoded already.
    fn read(&mut self, n: usize) -> bool {
        let is_hit = self.is_decoded(n);
        if is_hit {
            self.entries[n].residence.mark_read();
        } else {
            let charge = self.residency.admit(&self.entries[n], self.entry_bytes);
            *self.entries[n].decoded.lock() = charge;
            self.evict();
        }
        is_hit
    }

    fn read_all(&mut self, entries: std::ops::Range<usize>) {
        for n in entries {
            self.read(n);
        }
    }

    fn evict(&mut self) {
        while self.residency.is_over_budget() {
            let victims = self.residency.evictions(4).victims;
            drop_decoded(&victims);
        }
        assert!(self.residency.account().bytes() <= self.residency.budget());
    }

    fn is_decoded(&self, n: usize) -> bool {
        self.entries[n].decoded.lock().is_some()
    }

    fn decoded(&self, entries: std::ops::Range<usize>) -> usize {
        entries.filter(|n| self.is_decoded(*n)).count()
    }
}

#[test]
fn a_full_scan_leaves_the_working_set_decoded() {
    let mut cache = Cache::new(10_000, 100, 100 * 1000);
    for _ in 0..3 {
        cache.read_all(0..800);
    }
    for scan in 0..3 {
        cache.read_all(0..10_000);
        let kept = cache.decoded(0..800);
        assert!(kept >= 720, "{kept} of 800 after scan {scan}");
        cache.read_all(0..800);
    }
}

#[test]
fn a_working_set_is_kept_while_a_scan_never_ends() {
    let mut cache = Cache::new(20_000, 100, 100 * 1000);
    let (mut hits, mut reads) = (0, 0);
    for n in 0..200_000 {
        cache.read(1000 + n % 19_000);
        let is_hit = cache.read(n % 500);
        if n > 5000 {
            reads += 1;
            hits += usize::from(is_hit);
        }
    }
    assert!(hits * 10 >= reads * 9, "{hits} hits of {reads} reads");
}

#[test]
fn a_new_working_set_replaces_the_old_one() {
    let mut cache = Cache::new(2000, 100, 100 * 1000);
    for _ in 0..4 {
        cache.read_all(0..800);
    }
    for _ in 0..6 {
        cache.read_all(1000..1800);
    }
    let decoded = cache.decoded(1000..1800);
    assert!(decoded >= 720, "{decoded} of 800");
}

#[test]
fn a_budget_of_nothing_or_of_one_byte_keeps_nothing_decoded() {
    for budget in [0, 1] {
        let mut cache = Cache::new(10, 100, budget);
        assert!((0..100).all(|n| !cache.read(n % 10)));
        assert_eq!((cache.residency.account().bytes(), cache.residency.account().objects()), (0, 0));
    }
    let mut cache = Cache::new(10, 1, 1);
    assert!((0..100).all(|n| !cache.read(n % 10)), "objects of one byte displace each other");
    assert!(cache.read(9), "except the last");
}

#[test]
fn objects_without_bytes_are_kept_in_any_budget() {
    let mut cache = Cache::new(10, 0, 0);
    cache.read_all(0..10);
    assert!((0..10).all(|n| cache.read(n)));
}

#[test]
fn a_smaller_budget_evicts_at_most_the_limit_of_each_call() {
    let mut cache = Cache::new(100, 10, 1000);
    cache.read_all(0..100);
    cache.residency.set_budget(0);
    let mut evicted = 0;
    while cache.residency.is_over_budget() {
        let victims = cache.residency.evictions(7).victims;
        assert!((1..=7).contains(&victims.len()));
        evicted += victims.len();
        // The charges end later than the next call.
        assert_eq!(cache.residency.account().bytes(), 1000);
    }
    assert_eq!(evicted, 100);
}

#[test]
fn a_call_examines_a_limited_number_of_entries() {
    let mut cache = Cache::new(1000, 10, 10_000);
    cache.read_all(0..1000);
    cache.read_all(0..1000);
    cache.residency.set_budget(5000);
    for call in 0..500 / (2 * STEPS_PER_EVICTION) {
        assert_eq!(cache.residency.evictions(2).victims.len(), 0, "all entries were read again, call {call}");
    }
    assert!(cache.residency.is_over_budget());
    cache.evict();
    assert_eq!(cache.residency.account().objects(), 500);
}

#[test]
fn entries_that_end_release_their_bytes_and_their_slots() {
    let mut cache = Cache::new(0, 10, 1000);
    for _ in 0..10_000 {
        cache.entries = vec![Arc::default()];
        cache.read(0);
        assert_eq!((cache.residency.account().bytes(), cache.residency.account().objects()), (10, 1));
        assert_eq!(cache.entries[0].decoded.lock().as_ref().map(Charge::bytes), Some(10));
    }
    assert_eq!(cache.residency.evicted(), 0);
    cache.entries.clear();
    assert_eq!(cache.residency.account().bytes(), 0);
    assert!(cache.residency.evictions(10).victims.is_empty());
    assert!(format!("{:?}", cache.residency.slots).contains("all: []"), "a slot was kept");
}

#[test]
fn the_account_is_exact_after_entries_end_on_other_threads() {
    let residency = Mutex::new(Residency::<Entry>::new(5000));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let entry = Arc::new(Entry::default());
                    let charge = residency.lock().admit(&entry, 100);
                    *entry.decoded.lock() = charge;
                    let victims = residency.lock().evictions(10).victims;
                    drop_decoded(&victims);
                }
            });
        }
    });
    let mut residency = residency.lock();
    assert_eq!((residency.account().bytes(), residency.account().objects()), (0, 0));
    residency.release();
    assert_eq!(residency.kept_bytes(), 0);
}

/// Returns the hit rates of a cache and of LRU for the same reads, in percent.
fn hit_rates(entries: usize, capacity: usize, mut next: impl FnMut() -> usize) -> (usize, usize) {
    let mut cache = Cache::new(entries, 10, capacity * 10);
    let mut lru = lru_cache(capacity);
    let (mut hits, mut lru_hits) = (0, 0);
    let reads = 60_000;
    for _ in 0..reads {
        let n = next();
        hits += usize::from(cache.read(n));
        lru_hits += usize::from(lru(n));
    }
    (hits * 100 / reads, lru_hits * 100 / reads)
}

/// Returns a function that reads an entry of an LRU cache and returns whether it was present.
fn lru_cache(capacity: usize) -> impl FnMut(usize) -> bool {
    let mut order = VecDeque::new();
    move |n| {
        let position = order.iter().position(|other| *other == n);
        if let Some(position) = position {
            order.remove(position);
        } else if order.len() == capacity {
            order.pop_front();
        }
        order.push_back(n);
        position.is_some()
    }
}

#[test]
fn the_hit_rate_of_zipf_distributed_reads_is_within_a_tenth_of_lru() {
    let entries = 2000;
    for (exponent, capacity) in [(0.8, 50), (0.8, 400), (1.0, 50), (1.0, 200), (1.2, 100)] {
        let mut sums = Vec::with_capacity(entries);
        let mut sum = 0.0;
        for rank in 1..=2000_u32 {
            sum += f64::from(rank).powf(-exponent);
            sums.push(sum);
        }
        let mut rng = fastrand::Rng::with_seed(3);
        let (ours, lru) = hit_rates(entries, capacity, || {
            let drawn = rng.f64() * sum;
            sums.partition_point(|below| *below < drawn).min(entries - 1)
        });
        assert!(ours * 10 >= lru * 9, "{ours} % beside {lru} % of LRU, s = {exponent}, {capacity} objects");
    }
}

/// The rules in a simple form: two vectors, oldest first.
#[derive(Default)]
struct Model {
    budget: usize,
    probation: Vec<(usize, usize)>,
    main: Vec<(usize, usize)>,
    referenced: [bool; ENTRIES],
    left_probation: [Option<u64>; ENTRIES],
    evicted: u64,
}

const ENTRIES: usize = 12;

impl Model {
    fn is_decoded(&self, n: usize) -> bool {
        self.probation.iter().chain(&self.main).any(|(other, _)| *other == n)
    }

    fn bytes(list: &[(usize, usize)]) -> usize {
        list.iter().map(|(_, bytes)| bytes).sum()
    }

    fn read(&mut self, n: usize, bytes: usize) {
        if self.is_decoded(n) {
            self.referenced[n] = true;
        } else if bytes <= self.budget {
            self.referenced[n] = false;
            let is_soon = self.left_probation[n].is_some_and(|at| self.evicted - at < self.main.len() as u64);
            if is_soon {
                self.main.push((n, bytes));
            } else {
                self.probation.push((n, bytes));
            }
            self.evict();
        }
    }

    fn evict(&mut self) {
        while Self::bytes(&self.probation) + Self::bytes(&self.main) > self.budget {
            let is_probation = self.main.is_empty() || Self::bytes(&self.probation) > self.budget / 8;
            let (n, bytes) = if is_probation { self.probation.remove(0) } else { self.main.remove(0) };
            if std::mem::take(&mut self.referenced[n]) {
                self.main.push((n, bytes));
                continue;
            }
            if is_probation {
                self.left_probation[n] = Some(self.evicted);
            }
            self.evicted += 1;
        }
    }

    fn remove(&mut self, n: usize) {
        self.probation.retain(|(other, _)| *other != n);
        self.main.retain(|(other, _)| *other != n);
        self.referenced[n] = false;
        self.left_probation[n] = None;
    }
}

#[derive(Debug, Clone)]
enum Op {
    Read { n: usize, bytes: usize },
    Replace { n: usize },
    SetBudget { bytes: usize },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..ENTRIES, 0..40_usize).prop_map(|(n, bytes)| Op::Read { n, bytes }),
        1 => (0..ENTRIES).prop_map(|n| Op::Replace { n }),
        1 => (0..200_usize).prop_map(|bytes| Op::SetBudget { bytes }),
    ]
}

proptest! {
    #[test]
    fn the_decoded_objects_are_those_of_a_simple_model(
        ops in prop::collection::vec(op(), 1..300),
        budget in 0..200_usize,
    ) {
        let mut cache = Cache::new(ENTRIES, 0, budget);
        let mut model = Model { budget, ..Model::default() };
        for op in ops {
            match op {
                Op::Read { n, bytes } => {
                    cache.entry_bytes = bytes;
                    cache.read(n);
                    model.read(n, bytes);
                }
                Op::Replace { n } => {
                    cache.entries[n] = Arc::default();
                    model.remove(n);
                }
                Op::SetBudget { bytes } => {
                    cache.residency.set_budget(bytes);
                    cache.evict();
                    model.budget = bytes;
                    model.evict();
                }
            }
            for n in 0..ENTRIES {
                prop_assert_eq!(cache.is_decoded(n), model.is_decoded(n), "entry {}", n);
            }
            let bytes = Model::bytes(&model.probation) + Model::bytes(&model.main);
            prop_assert_eq!(cache.residency.account().bytes(), bytes);
            prop_assert_eq!(cache.residency.account().objects(), model.probation.len() + model.main.len());
            prop_assert_eq!(cache.residency.evicted(), model.evicted);
        }
    }
}
