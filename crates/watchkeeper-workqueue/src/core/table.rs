//! Which slot a key is in.

#![expect(
    clippy::inline_always,
    reason = "the path of every key: a fifth fewer instructions than with calls"
)]

use std::{hint, mem};

use super::slots::SlotId;

/// A hash table of slot numbers that answers almost every question with one cache line.
///
/// A bucket is a line. Its entries carry, beside the slot's number, as many bits of the hash as there is room for, so
/// that other keys are told apart without looking at their slots, which lie all over memory. Finding a key reads its
/// bucket and its slot; adding and removing one touch the bucket alone.
///
/// A full bucket sends keys on to the next one and counts them, so a search knows where to stop and removing a key
/// leaves no mark behind: a table that is filled and emptied for years never has to be cleaned.
#[derive(Debug)]
pub(super) struct Table {
    /// A power of two of them, or none.
    buckets: Vec<Bucket>,
    /// So many upper bits of a hash say which bucket. Those that follow are in the entry.
    bits: u32,
    /// The bits of an entry that are the slot's number; the others are the hash's.
    number: u32,
}

/// Sixteen words, so that all can be compared at once: the entries, how many of them are used, and how many keys that
/// belong here or before were sent on.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Bucket([u32; 16]);

const ENTRIES: usize = 14;
/// Any number, taken by this, is a place in a bucket: said so that no check is needed.
const WORD: usize = 15;
const USED: usize = 14;
const SENT_ON: usize = 15;
/// Keys a bucket when the table is full: one bucket in six then sends keys on.
const FULL: usize = 11;
/// Numbers of slots for each bucket: the power of two above [`FULL`].
const NUMBERS: usize = 16;
/// 128 KiB of buckets.
const LARGE: usize = 2048;

impl Bucket {
    const EMPTY: Self = Self([0; 16]);

    /// A bit for each used entry that equals `wanted` in the bits of `mask`.
    ///
    /// All of them at once, without a branch: where an entry stands is random, so guessing it fails every other time.
    #[inline(always)]
    fn equal(&self, wanted: u32, mask: u32) -> u32 {
        if self.0[USED] == 0 {
            return 0;
        }
        let bits =
            self.0.iter().zip(0..).map(|(entry, place)| u32::from((entry ^ wanted) & mask == 0) << place);
        bits.fold(0, |all, bit| all | bit) & ((1 << self.0[USED]) - 1)
    }
}

impl Table {
    pub(super) const fn new() -> Self {
        Self { buckets: Vec::new(), bits: 0, number: 0 }
    }

    /// Whether this many keys are all the table should hold.
    #[inline(always)]
    pub(super) fn is_full(&self, keys: usize) -> bool {
        keys >= self.buckets.len() * FULL
    }

    /// Whether it is so large that much of it is out of the processor's near caches.
    #[inline(always)]
    pub(super) fn is_large(&self) -> bool {
        self.buckets.len() > LARGE
    }

    /// Makes room for twice as many keys.
    ///
    /// The keys of a bucket go to the two that take its place, side by side, and which of them is for the first bit of the
    /// hash that an entry carries: from the first bucket to the last, nothing else is read. Only for keys that may have been
    /// sent on, and in tables of so many buckets that entries carry no bits, `hash_of` is asked.
    #[cold]
    pub(super) fn grow(&mut self, hash_of: impl Fn(SlotId) -> u32) {
        let count = (self.buckets.len() * 2).max(1);
        // However many buckets: slots are numbered by 32 bits.
        let number = u32::try_from(count * NUMBERS - 1).unwrap_or(u32::MAX);
        let old = Self { buckets: mem::replace(&mut self.buckets, vec![Bucket::EMPTY; count]), ..*self };
        (self.bits, self.number) = (count.trailing_zeros(), number);
        let mut may_be_sent_on = old.buckets.last().is_some_and(|last| last.0[SENT_ON] > 0);
        for (bucket, place) in old.buckets.iter().zip(0..) {
            for entry in &bucket.0[..bucket.0[USED] as usize] {
                let slot = entry & old.number;
                if may_be_sent_on || old.number == u32::MAX {
                    self.insert(hash_of(slot), slot);
                } else {
                    let goes_second = entry >> (u32::BITS - 1);
                    self.insert_at(2 * place + goes_second as usize, (entry << 1) & !number | slot);
                }
            }
            may_be_sent_on = bucket.0[SENT_ON] > 0;
        }
    }

    /// The slot of a key with this hash for which `is_it` says so.
    #[inline(always)]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(SlotId) -> bool) -> Option<SlotId> {
        let mut place = self.place(hash);
        loop {
            let bucket = self.buckets.get(place)?;
            let mut equal = bucket.equal(hash << self.bits, !self.number);
            while equal != 0 {
                let slot = bucket.0[equal.trailing_zeros() as usize & WORD] & self.number;
                if is_it(slot) {
                    return Some(slot);
                }
                equal &= equal - 1;
            }
            if bucket.0[SENT_ON] == 0 {
                return None;
            }
            place = self.after(place);
        }
    }

    /// Reads the buckets of these hashes, so that they are in the cache when they are needed.
    ///
    /// In a large table each is a trip to memory. One after the other, each lookup waits for its own; read like this,
    /// with nothing in between that depends on them, they travel together.
    #[inline]
    pub(super) fn fetch(&self, hashes: impl Iterator<Item = u32>) {
        let words = hashes.filter_map(|hash| self.buckets.get(self.place(hash))).map(|bucket| bucket.0[USED]);
        // Without a use of what was read, it would not be read.
        hint::black_box(words.fold(0, u32::wrapping_add));
    }

    /// Adds a key that is not in the table. The table is not [full](Self::is_full).
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: u32, slot: SlotId) {
        debug_assert!(slot <= self.number, "numbers of slots fit their part of an entry");
        self.insert_at(self.place(hash), self.entry(hash, slot));
    }

    #[inline(always)]
    fn insert_at(&mut self, mut place: usize, entry: u32) {
        loop {
            let bucket = &mut self.buckets[place];
            let used = bucket.0[USED] as usize;
            if used < ENTRIES {
                bucket.0[used] = entry;
                bucket.0[USED] += 1;
                return;
            }
            bucket.0[SENT_ON] += 1;
            place = self.after(place);
        }
    }

    /// Takes out a key that is in the table.
    #[inline(always)]
    pub(super) fn remove(&mut self, hash: u32, slot: SlotId) {
        let entry = self.entry(hash, slot);
        let mut place = self.place(hash);
        loop {
            let bucket = &mut self.buckets[place];
            let equal = bucket.equal(entry, u32::MAX);
            if equal != 0 {
                let last = bucket.0[USED] as usize - 1;
                bucket.0[equal.trailing_zeros() as usize & WORD] = bucket.0[last & WORD];
                bucket.0[USED] -= 1;
                return;
            }
            debug_assert!(bucket.0[SENT_ON] > 0, "a key is where it was put or sent on from there");
            bucket.0[SENT_ON] -= 1;
            place = self.after(place);
        }
    }

    #[inline(always)]
    fn place(&self, hash: u32) -> usize {
        hash.unbounded_shr(u32::BITS - self.bits) as usize
    }

    #[inline(always)]
    fn entry(&self, hash: u32, slot: SlotId) -> u32 {
        (hash << self.bits) & !self.number | slot
    }

    #[inline(always)]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Few different hashes, so that buckets overflow, also across the end of the table.
        #[test]
        fn every_key_is_found_and_no_bucket_counts_keys_that_are_gone(
            calls in prop::collection::vec((any::<bool>(), 0..150_u32), 1..1000),
            hashes in 1..20_u32,
        ) {
            let hash = |key: u32| (key % hashes).wrapping_mul(0x9E37_79B9);
            let (mut table, mut expected) = (Table::new(), BTreeMap::new());
            for (adds, key) in calls {
                prop_assert_eq!(table.find(hash(key), |slot| slot == key), expected.get(&key).copied());
                if adds && !expected.contains_key(&key) {
                    // The numbers of slots are those of the keys, so there is room for all of them from the start.
                    while table.is_full(150) {
                        table.grow(hash);
                    }
                    table.insert(hash(key), key);
                    expected.insert(key, key);
                } else if expected.remove(&key).is_some() {
                    table.remove(hash(key), key);
                }
            }
            for key in expected.into_keys() {
                prop_assert_eq!(table.find(hash(key), |slot| slot == key), Some(key));
                table.remove(hash(key), key);
            }
            prop_assert!(table.buckets.iter().all(|bucket| bucket.0[USED] == 0 && bucket.0[SENT_ON] == 0));
        }
    }
}
