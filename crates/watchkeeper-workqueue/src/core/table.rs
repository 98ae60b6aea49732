//! Which slot a key is in.

#![expect(
    clippy::inline_always,
    reason = "the path of every key: a fifth fewer instructions than with calls"
)]

use std::{hint, mem};

use wide::{i16x8, i32x8};

use super::slots::SlotId;

/// A hash table of slot numbers that answers almost every question with one cache line, and that never stops to grow.
///
/// A bucket is a line. Its entries carry, beside the slot's number, as many bits of the hash as there is room for, so
/// that other keys are told apart without looking at their slots, which lie all over memory. Finding a key reads its
/// bucket and its slot; adding and removing one touch the bucket alone.
///
/// A full bucket sends keys on to the next one and counts them, so a search knows where to stop and removing a key
/// leaves no mark behind: a table that is filled and emptied for years never has to be cleaned. An entry says whether it was
/// sent on, so that only those that were are asked for their hash when the table grows.
///
/// A full table is moved into one of twice the size from the first bucket to the last, a few buckets with each key that
/// is added. Moving a million keys at once would hold the queue's lock for ten milliseconds, in which no key is handed
/// out.
#[derive(Debug)]
pub(super) struct Table {
    current: Part,
    /// While the table grows: the smaller one, and what of it has not been moved yet.
    old: Part,
    /// Of the old one, so many buckets have been moved.
    moved: usize,
    /// Keys with a lesser hash are in the current part, others in the old one. More than any hash while there is no old one.
    moved_below: u64,
    /// From so many keys on there is something to do before the next is added.
    limit: usize,
}

/// A table of one size.
#[derive(Debug)]
struct Part {
    /// As many as were needed so far. Room for all is taken at once, so that they never move, and filled bit by bit.
    buckets: Vec<Bucket>,
    /// So many upper bits of a hash say which bucket. Those that follow are in the entry.
    bits: u32,
    /// The bits of an entry that are the slot's number; one above them says whether the entry was sent on, and the others are
    /// the hash's.
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
const LARGE_BITS: u32 = 11;
/// The smallest table is of two to the power of this buckets: two kilobytes, in which a few keys seldom share one.
/// (Tests want it to grow often.)
const SMALLEST_BITS: u32 = if cfg!(test) { 1 } else { 5 };
/// Room for what the last bucket sends on: more is hardly ever needed.
const PAST_THE_END: usize = 2;
/// So many buckets are moved with each key that is added: as much work as the add itself, and done long before the table is
/// full again.
const MOVE_AT_ONCE: usize = 2;

impl Bucket {
    const EMPTY: Self = Self([0; 16]);

    /// A bit for each used entry that equals `wanted` in the bits of `mask`; `wanted` has no others.
    ///
    /// All of them at once, without a branch: where an entry stands is random, so guessing it fails every other time.
    #[inline(always)]
    fn equal(&self, wanted: u32, mask: u32) -> u32 {
        if self.0[USED] == 0 {
            return 0;
        }
        let (wanted, mask) = (i32x8::splat(wanted.cast_signed()), i32x8::splat(mask.cast_signed()));
        let (halves, _) = self.0.as_chunks::<8>();
        let bits = halves.iter().rev().fold(0, |bits, half| {
            let equal = (i32x8::new(half.map(u32::cast_signed)) & mask).simd_eq(wanted);
            bits << 8 | i16x8::from_i32x8_saturate(equal).to_bitmask()
        });
        bits & ((1 << self.0[USED]) - 1)
    }
}

impl Table {
    pub(super) const fn new() -> Self {
        Self { current: Part::NONE, old: Part::NONE, moved: 0, moved_below: u64::MAX, limit: 0 }
    }

    /// Whether with this many keys it has to [make room](Self::make_room) before the next one is added.
    #[inline(always)]
    pub(super) fn is_full(&self, keys: usize) -> bool {
        keys >= self.limit
    }

    /// Whether it is so large that much of it is out of the processor's near caches.
    #[inline(always)]
    pub(super) fn is_large(&self) -> bool {
        self.current.bits > LARGE_BITS
    }

    /// Whether keys are being moved to make room.
    pub(super) fn is_growing(&self) -> bool {
        self.moved_below != u64::MAX
    }

    /// Makes room for one more key. `hash_of` is asked for the hash of a few keys.
    #[cold]
    pub(super) fn make_room(&mut self, hash_of: impl Fn(SlotId) -> u32) {
        if self.current.buckets.is_empty() {
            self.current = Part::of(SMALLEST_BITS);
            self.current.need(self.current.count() - 1);
            self.limit = self.current.count() * FULL;
            return;
        }
        if !self.is_growing() {
            let twice = Part::of(self.current.bits + 1);
            self.old = mem::replace(&mut self.current, twice);
            // Each key that comes moves some, until all have been moved.
            (self.moved, self.moved_below, self.limit) = (0, 0, 0);
        }
        self.move_some(hash_of);
    }

    /// Moves the next buckets of the old part into the current one.
    ///
    /// The keys of a bucket go to the two that take its place, side by side, and which of them is for the first bit of the
    /// hash that an entry carries: from the first bucket to the last, nothing else is read. Only for keys that were sent on,
    /// and in tables of so many buckets that entries carry no bits, `hash_of` is asked.
    ///
    /// Stops after a bucket that sent nothing on, so that no key of a bucket that was moved is left in one that was not.
    fn move_some(&mut self, hash_of: impl Fn(SlotId) -> u32) {
        let Self { current, old, .. } = self;
        let (mut are_sent_on, stop_at) = (false, self.moved + MOVE_AT_ONCE);
        while self.moved < stop_at || are_sent_on {
            let place = self.moved;
            let bucket = old.buckets.get(place).unwrap_or(&Bucket::EMPTY);
            current.need(2 * place + 1);
            for entry in &bucket.0[..bucket.0[USED] as usize] {
                let slot = entry & old.number;
                if entry & old.sent_on() != 0 || !old.has_bits() {
                    current.insert(hash_of(slot), slot);
                } else {
                    let goes_second = entry >> (u32::BITS - 1);
                    current
                        .insert_at(2 * place + goes_second as usize, (entry << 1) & current.carried() | slot);
                }
            }
            are_sent_on = bucket.0[SENT_ON] > 0;
            self.moved += 1;
            if self.moved >= old.count() && !are_sent_on {
                (self.old, self.moved_below) = (Part::NONE, u64::MAX);
                self.limit = self.current.count() * FULL;
                return;
            }
        }
        self.moved_below = (self.moved as u64) << (u32::BITS - old.bits);
    }

    /// The slot of a key with this hash for which `is_it` says so.
    #[inline(always)]
    pub(super) fn find(&self, hash: u32, is_it: impl FnMut(SlotId) -> bool) -> Option<SlotId> {
        if self.is_current(hash) { self.current.find(hash, is_it) } else { self.find_in_old(hash, is_it) }
    }

    /// Reads the buckets of these hashes, so that they are in the cache when they are needed.
    ///
    /// In a large table each is a trip to memory. One after the other, each lookup waits for its own; read like this,
    /// with nothing in between that depends on them, they travel together.
    #[inline]
    pub(super) fn fetch(&self, hashes: impl Iterator<Item = u32>) {
        let Self { current, old, .. } = self;
        let bucket = |hash| {
            if self.is_current(hash) {
                current.buckets.get(current.place(hash))
            } else {
                old.buckets.get(old.place(hash))
            }
        };
        let words = hashes.filter_map(bucket).map(|bucket| bucket.0[USED]);
        // Without a use of what was read, it would not be read.
        hint::black_box(words.fold(0, u32::wrapping_add));
    }

    /// Adds a key that is not in the table. The table is not [full](Self::is_full), or has just made room.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: u32, slot: SlotId) {
        if self.is_current(hash) {
            self.current.insert(hash, slot);
        } else {
            self.insert_into_old(hash, slot);
        }
    }

    /// Takes out a key that is in the table.
    #[inline(always)]
    pub(super) fn remove(&mut self, hash: u32, slot: SlotId) {
        if self.is_current(hash) {
            self.current.remove(hash, slot);
        } else {
            self.remove_from_old(hash, slot);
        }
    }

    /// Whether keys with this hash are in the current part.
    #[inline(always)]
    fn is_current(&self, hash: u32) -> bool {
        u64::from(hash) < self.moved_below
    }

    #[cold]
    #[inline(never)]
    fn find_in_old(&self, hash: u32, is_it: impl FnMut(SlotId) -> bool) -> Option<SlotId> {
        self.old.find(hash, is_it)
    }

    #[cold]
    #[inline(never)]
    fn insert_into_old(&mut self, hash: u32, slot: SlotId) {
        self.old.insert(hash, slot);
    }

    #[cold]
    #[inline(never)]
    fn remove_from_old(&mut self, hash: u32, slot: SlotId) {
        self.old.remove(hash, slot);
    }
}

impl Part {
    const NONE: Self = Self { buckets: Vec::new(), bits: SMALLEST_BITS, number: 0 };

    /// Of two to the power of `bits` buckets.
    fn of(bits: u32) -> Self {
        // However many buckets: slots are numbered by 32 bits.
        let number = u32::try_from((NUMBERS << bits) - 1).unwrap_or(u32::MAX);
        Self { buckets: Vec::with_capacity((1 << bits) + PAST_THE_END), bits, number }
    }

    /// How many there are, not counting those past the end that hold what the last of them sent on.
    fn count(&self) -> usize {
        1 << self.bits
    }

    /// The bit of an entry that says that it is not in the bucket it belongs to. None in the largest tables, whose entries are
    /// all number.
    #[inline(always)]
    fn sent_on(&self) -> u32 {
        self.number.wrapping_add(1)
    }

    /// The bits of an entry that are the hash's.
    #[inline(always)]
    fn carried(&self) -> u32 {
        !(self.number | self.sent_on())
    }

    /// Whether an entry has bits of the hash.
    fn has_bits(&self) -> bool {
        self.carried() != 0
    }

    /// Has the bucket at this place, and all before it.
    #[inline(always)]
    fn need(&mut self, place: usize) {
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, Bucket::EMPTY);
        }
    }

    #[inline(always)]
    fn find(&self, hash: u32, mut is_it: impl FnMut(SlotId) -> bool) -> Option<SlotId> {
        let (mut place, mut wanted) = (self.place(hash), (hash << self.bits) & self.carried());
        loop {
            let bucket = self.buckets.get(place)?;
            let mut equal = bucket.equal(wanted, !self.number);
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
            place += 1;
            wanted |= self.sent_on();
        }
    }

    #[inline(always)]
    fn insert(&mut self, hash: u32, slot: SlotId) {
        debug_assert!(slot <= self.number, "numbers of slots fit their part of an entry");
        self.insert_at(self.place(hash), self.entry(hash, slot));
    }

    #[inline(always)]
    fn insert_at(&mut self, mut place: usize, mut entry: u32) {
        loop {
            let bucket = &mut self.buckets[place];
            let used = bucket.0[USED] as usize;
            if used < ENTRIES {
                bucket.0[used] = entry;
                bucket.0[USED] += 1;
                return;
            }
            bucket.0[SENT_ON] += 1;
            place += 1;
            entry |= self.sent_on();
            self.need(place);
        }
    }

    #[inline(always)]
    fn remove(&mut self, hash: u32, slot: SlotId) {
        let (mut place, mut entry) = (self.place(hash), self.entry(hash, slot));
        let sent_on = self.sent_on();
        while let Some(bucket) = self.buckets.get_mut(place) {
            // Alone, as in a queue that is nearly empty.
            if bucket.0[USED] == 1 && bucket.0[0] == entry {
                bucket.0[USED] = 0;
                return;
            }
            let equal = bucket.equal(entry, u32::MAX);
            if equal != 0 {
                let last = bucket.0[USED] as usize - 1;
                bucket.0[equal.trailing_zeros() as usize & WORD] = bucket.0[last & WORD];
                bucket.0[USED] -= 1;
                return;
            }
            debug_assert!(bucket.0[SENT_ON] > 0, "a key is where it was put or sent on from there");
            bucket.0[SENT_ON] -= 1;
            place += 1;
            entry |= sent_on;
        }
    }

    #[inline(always)]
    fn place(&self, hash: u32) -> usize {
        (hash >> (u32::BITS - self.bits)) as usize
    }

    #[inline(always)]
    fn entry(&self, hash: u32, slot: SlotId) -> u32 {
        (hash << self.bits) & self.carried() | slot
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const KEYS: u32 = 600;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// From few different hashes, so that buckets overflow, also past the end of the table, to many, so that there are
        /// buckets that do not; and always some that are only half grown.
        #[test]
        fn every_key_is_found_and_no_bucket_counts_keys_that_are_gone(
            calls in prop::collection::vec((0..4_u8, 0..KEYS), 1..1500),
            hashes in 1..KEYS,
        ) {
            let hash = |key: u32| (key % hashes).wrapping_mul(0x9E37_79B9);
            let (mut table, mut slots) = (Table::new(), BTreeMap::new());
            // The key of each slot. Slots are numbered as the slab does: the lowest that never was used comes last.
            let (mut keys, mut free): (Vec<u32>, Vec<SlotId>) = (Vec::new(), Vec::new());
            for (call, key) in calls {
                prop_assert_eq!(table.find(hash(key), |slot| keys[slot as usize] == key), slots.get(&key).copied());
                if call > 0 && !slots.contains_key(&key) {
                    if table.is_full(slots.len()) {
                        table.make_room(|slot| hash(keys[slot as usize]));
                    }
                    let slot = free.pop().unwrap_or_else(|| {
                        keys.push(key);
                        u32::try_from(keys.len() - 1).unwrap()
                    });
                    keys[slot as usize] = key;
                    table.insert(hash(key), slot);
                    slots.insert(key, slot);
                } else if let Some(slot) = slots.remove(&key) {
                    table.remove(hash(key), slot);
                    free.push(slot);
                }
            }
            for (key, slot) in slots {
                prop_assert_eq!(table.find(hash(key), |slot| keys[slot as usize] == key), Some(slot));
                table.remove(hash(key), slot);
            }
            let buckets = table.current.buckets.iter().chain(table.old.buckets.iter().skip(table.moved));
            for bucket in buckets {
                prop_assert_eq!((bucket.0[USED], bucket.0[SENT_ON]), (0, 0));
            }
        }
    }

    #[test]
    fn a_table_grows_by_a_few_buckets_with_each_key() {
        let hash = |slot: u32| slot.wrapping_mul(0x9E37_79B9);
        let mut table = Table::new();
        let (mut most_moved, mut times_grown) = (0, 0);
        for slot in 0..10_000 {
            let (was_growing, moved_before) = (table.is_growing(), table.moved);
            if table.is_full(slot as usize) {
                table.make_room(hash);
            }
            if was_growing && table.is_growing() {
                most_moved = most_moved.max(table.moved - moved_before);
            }
            times_grown += u32::from(was_growing && !table.is_growing());
            table.insert(hash(slot), slot);
        }
        assert!(
            times_grown >= 8 && table.current.count() * FULL >= 10_000,
            "it grew, and caught up each time"
        );
        assert!((1..64).contains(&most_moved), "{most_moved} buckets were moved at once");
    }
}
