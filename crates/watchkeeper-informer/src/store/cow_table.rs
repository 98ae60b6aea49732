//! A copy-on-write hash table of numbers.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::cow_vec::CowVec;

/// Returns the part of a hash that the tables use: the upper half, which is the well-mixed one.
pub(crate) fn hash_of(hasher: &RandomState, text: &[u8]) -> u32 {
    let mut hasher = hasher.build_hasher();
    hasher.write(text);
    (hasher.finish() >> 32) as u32
}

/// The number of homes that are added at a time: one page.
const STEP: u64 = 64;
/// The number of homes above which a nearly empty table is rebuilt smaller.
const KEEP_HOMES: u64 = 1024;

/// A number with the hash of its key. The key itself is stored by the caller, under that number.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    hash: u32,
    /// The number plus one. Zero is an empty place.
    tag: u32,
}

/// A hash table that finds a number by the hash of its key; the caller compares the keys.
///
/// Linear probing over a [`CowVec`], so that a snapshot can look keys up without a copy of the whole table. The home of
/// a hash grows with the hash, and entries are sorted by hash: a search ends at the first larger hash, and growing is one
/// pass that hashes nothing. Entries past the last home are appended; the table does not wrap around.
#[derive(Clone)]
pub(crate) struct CowTable {
    entries: CowVec<Entry>,
    homes: u64,
    len: u64,
}

impl CowTable {
    pub(crate) fn new() -> Self {
        Self { entries: CowVec::new(), homes: 0, len: 0 }
    }

    pub(crate) fn find(&self, hash: u32, mut is_match: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut found = None;
        self.position(hash, |number| {
            found = Some(number);
            is_match(number)
        })?;
        found
    }

    /// Adds a number whose key is not in the table.
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        self.reserve(1);
        let mut carried = Entry { hash, tag: number + 1 };
        let mut at = self.home(hash);
        while let Some(&entry) = self.entries.get(at) {
            if entry.tag == 0 {
                break;
            }
            if entry.hash > carried.hash {
                self.set(at, carried);
                carried = entry;
            }
            at += 1;
        }
        if at == self.entries.len() {
            self.entries.push(carried);
        } else {
            self.set(at, carried);
        }
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, hash: u32, number: u32) {
        let Some(mut at) = self.position(hash, |candidate| candidate == number) else { return };
        // Entries that were displaced to the right move back.
        while let Some(&next) = self.entries.get(at + 1) {
            if next.tag == 0 || self.home(next.hash) > at {
                break;
            }
            self.set(at, next);
            at += 1;
        }
        self.set(at, Entry::default());
        self.len -= 1;
        if self.homes > KEEP_HOMES && self.len * 8 < self.homes {
            self.rebuild(self.len * 2);
        }
    }

    /// Replaces the number `from` of a key with this `hash` by the number `to`.
    pub(crate) fn renumber(&mut self, hash: u32, from: u32, to: u32) {
        if let Some(at) = self.position(hash, |candidate| candidate == from) {
            self.set(at, Entry { hash, tag: to + 1 });
        }
    }

    /// Returns whether adding `additional` numbers rebuilds the table.
    pub(crate) fn grows_with(&self, additional: usize) -> bool {
        (self.len + additional as u64) * 5 > self.homes * 4
    }

    /// Reserves capacity for `additional` numbers.
    pub(crate) fn reserve(&mut self, additional: usize) {
        if self.grows_with(additional) {
            let needed = (self.len + additional as u64) * 5 / 4 + 1;
            self.rebuild(needed.max(self.homes + self.homes / 2));
        }
    }

    fn position(&self, hash: u32, mut is_match: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let run = self.entries.rest_of_page(at);
            if run.is_empty() {
                return None;
            }
            for entry in run {
                if entry.tag == 0 || entry.hash > hash {
                    return None;
                }
                if entry.hash == hash && is_match(entry.tag - 1) {
                    return Some(at);
                }
                at += 1;
            }
        }
    }

    /// Returns the place where the search for a hash begins. It divides the places in proportion to the hashes.
    fn home(&self, hash: u32) -> usize {
        // Less than `homes`, which fits into memory.
        usize::try_from((u64::from(hash) * self.homes) >> 32).unwrap_or(usize::MAX)
    }

    fn set(&mut self, at: usize, entry: Entry) {
        if let Some(place) = self.entries.get_mut(at) {
            *place = entry;
        }
    }

    fn rebuild(&mut self, homes: u64) {
        self.homes = homes.next_multiple_of(STEP).max(STEP);
        let places = usize::try_from(self.homes).unwrap_or(usize::MAX);
        let before = std::mem::replace(&mut self.entries, CowVec::of_defaults(places));
        let mut next = 0;
        for &entry in before.iter().filter(|entry| entry.tag != 0) {
            let at = self.home(entry.hash).max(next);
            if at < self.entries.len() {
                self.set(at, entry);
            } else {
                self.entries.push(entry);
            }
            next = at + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u32),
        Remove(usize),
        Renumber(usize),
        Clone,
    }

    /// Generates few different hashes, at both ends of the range, so that runs are long and cross pages and the last home.
    fn hash() -> impl Strategy<Value = u32> {
        prop_oneof![any::<u32>(), 0..4_u32, (0..4_u32).prop_map(|below| u32::MAX - below)]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => hash().prop_map(Step::Insert),
            3 => any::<usize>().prop_map(Step::Remove),
            1 => any::<usize>().prop_map(Step::Renumber),
            1 => Just(Step::Clone),
        ];
        prop::collection::vec(step, 0..500)
    }

    fn assert_same(table: &CowTable, reference: &BTreeMap<u32, u32>) {
        for (&number, &hash) in reference {
            assert_eq!(table.find(hash, |candidate| candidate == number), Some(number));
        }
        assert_eq!(table.len, reference.len() as u64);
        let occupied: Vec<Entry> = table.entries.iter().copied().filter(|entry| entry.tag != 0).collect();
        assert_eq!(occupied.len(), reference.len());
        assert!(occupied.is_sorted_by_key(|entry| entry.hash), "a search may stop at a larger hash");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_number_is_found_by_its_hash_and_none_other(steps in steps()) {
            let mut ours = CowTable::new();
            let mut reference: BTreeMap<u32, u32> = BTreeMap::new();
            let mut clones = Vec::new();
            let mut next = 0;
            for step in steps {
                let pick = |which: usize| reference.iter().nth(which % reference.len().max(1)).map(|(&n, &h)| (n, h));
                match step {
                    Step::Insert(hash) => {
                        ours.insert(hash, next);
                        reference.insert(next, hash);
                        next += 1;
                    }
                    Step::Remove(which) => if let Some((number, hash)) = pick(which) {
                        ours.remove(hash, number);
                        reference.remove(&number);
                        prop_assert_eq!(ours.find(hash, |candidate| candidate == number), None);
                    },
                    Step::Renumber(which) => if let Some((number, hash)) = pick(which) {
                        ours.renumber(hash, number, next);
                        reference.remove(&number);
                        reference.insert(next, hash);
                        next += 1;
                    },
                    Step::Clone => clones.push((ours.clone(), reference.clone())),
                }
            }
            clones.push((ours, reference));
            for (clone, expected) in clones {
                assert_same(&clone, &expected);
            }
        }
    }

    #[test]
    fn a_table_that_was_large_frees_its_memory() {
        let hash = |number: u32| number.wrapping_mul(0x9e37_79b9);
        let mut table = CowTable::new();
        (0..100_000).for_each(|number| table.insert(hash(number), number));
        let large = table.entries.len();
        (10..100_000).for_each(|number| table.remove(hash(number), number));
        assert!(table.entries.len() < large / 50, "{} places of {large} left", table.entries.len());
        assert!((0..10).all(|number| table.find(hash(number), |found| found == number).is_some()));
    }
}
