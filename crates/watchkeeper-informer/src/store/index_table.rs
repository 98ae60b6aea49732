//! One index: the slots of each value, and the values of each slot.

use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{
    cow_table::{CowTable, hash_of},
    cow_vec::{CowSlab, CowVec},
    index::Values,
};

/// A mapping from values to slots, and from each slot back to its values.
///
/// The mapping back makes removal independent of the index function: an object is removed from the values under which
/// it was added, whatever the function would return now. It costs eight bytes per slot.
#[derive(Clone)]
pub(crate) struct IndexTable {
    sets: CowSlab<ValueSet>,
    by_value: CowTable,
    /// The posting of each slot.
    postings: CowVec<Posting>,
    /// The postings of slots with more than one value.
    several: CowSlab<Arc<Vec<Posting>>>,
}

/// A value and the slots that have it. A set is removed with its last slot.
#[derive(Clone)]
struct ValueSet {
    value: Arc<str>,
    slots: SlotSet,
}

/// The location of a slot in the index: the number of a value's set, and the position in that set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Posting {
    set: u32,
    position: u32,
}

impl Posting {
    const NOWHERE: Self = Self { set: u32::MAX, position: 0 };
    /// The set number of a slot with several values. The position is the number of its list in `several`.
    const SEVERAL: u32 = u32::MAX - 1;
}

impl Default for Posting {
    fn default() -> Self {
        Self::NOWHERE
    }
}

impl IndexTable {
    /// Creates an index over `slots` slots without values.
    pub(crate) fn new(slots: usize) -> Self {
        let postings = CowVec::of_defaults(slots);
        Self { sets: CowSlab::new(), by_value: CowTable::new(), postings, several: CowSlab::new() }
    }

    /// Returns the slots with this value.
    pub(crate) fn slots(&self, hasher: &RandomState, value: &str) -> Option<&SlotSet> {
        let set = self.find(hash_of(hasher, value.as_bytes()), value)?;
        Some(&self.sets.get(set)?.slots)
    }

    /// Returns the values for which the index contains a slot.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<str>> {
        self.sets.iter().map(|set| &set.value)
    }

    /// Appends a slot without values.
    pub(crate) fn push_slot(&mut self) {
        self.postings.push(Posting::NOWHERE);
    }

    /// Replaces the values of a slot.
    pub(crate) fn set(&mut self, hasher: &RandomState, slot: u32, values: &Values) {
        self.clear(hasher, slot);
        let posting = match values {
            Values::None => return,
            Values::One(value) => self.add(hasher, slot, value),
            Values::Several(values) => {
                let postings = values.iter().map(|value| self.add(hasher, slot, value)).collect();
                Posting { set: Posting::SEVERAL, position: self.several.insert(Arc::new(postings)) }
            }
        };
        if let Some(place) = self.postings.get_mut(slot as usize) {
            *place = posting;
        }
    }

    /// Removes a slot. The last slot gets its number.
    pub(crate) fn swap_remove_slot(&mut self, hasher: &RandomState, slot: u32) {
        self.clear(hasher, slot);
        self.postings.swap_remove(slot as usize);
        for posting in self.postings_of(slot) {
            if let Some(set) = self.sets.get_mut(posting.set) {
                set.slots.renumber(posting.position, slot);
            }
        }
    }

    fn find(&self, hash: u32, value: &str) -> Option<u32> {
        self.by_value.find(hash, |set| self.sets.get(set).is_some_and(|set| &*set.value == value))
    }

    /// Returns whether the slot has exactly these values.
    pub(crate) fn has(&self, slot: u32, values: &Values) -> bool {
        let is = |posting: Posting, value: &str| {
            self.sets.get(posting.set).is_some_and(|set| &*set.value == value)
        };
        let Some(&posting) = self.postings.get(slot as usize) else { return false };
        match values {
            Values::None => posting == Posting::NOWHERE,
            Values::One(value) => is(posting, value),
            Values::Several(values) => match self.several(posting) {
                Some(postings) => {
                    postings.len() == values.len()
                        && postings.iter().zip(values).all(|(&posting, value)| is(posting, value))
                }
                None => false,
            },
        }
    }

    fn several(&self, posting: Posting) -> Option<&Arc<Vec<Posting>>> {
        if posting.set == Posting::SEVERAL { self.several.get(posting.position) } else { None }
    }

    /// Returns the postings of a slot, one for each value.
    fn postings_of(&self, slot: u32) -> Vec<Posting> {
        match self.postings.get(slot as usize) {
            None | Some(&Posting::NOWHERE) => Vec::new(),
            Some(&posting) => {
                self.several(posting).map_or_else(|| vec![posting], |postings| Vec::clone(postings))
            }
        }
    }

    /// Adds a slot to the set of a value and returns its posting.
    fn add(&mut self, hasher: &RandomState, slot: u32, value: &str) -> Posting {
        let hash = hash_of(hasher, value.as_bytes());
        let set = self.find(hash, value).unwrap_or_else(|| {
            let set = self.sets.insert(ValueSet { value: value.into(), slots: SlotSet::new() });
            self.by_value.insert(hash, set);
            set
        });
        let position = self.sets.get_mut(set).map_or(0, |set| set.slots.push(slot));
        Posting { set, position }
    }

    /// Removes a slot from the sets of its values, and removes the sets that become empty.
    fn clear(&mut self, hasher: &RandomState, slot: u32) {
        let postings = self.postings_of(slot);
        if postings.is_empty() {
            return;
        }
        if let Some(place) = self.postings.get_mut(slot as usize) {
            let posting = std::mem::replace(place, Posting::NOWHERE);
            if posting.set == Posting::SEVERAL {
                self.several.remove(posting.position);
            }
        }
        for Posting { set: number, position } in postings {
            let Some(set) = self.sets.get_mut(number) else { continue };
            if let Some(moved) = set.slots.swap_remove(position) {
                self.repoint(moved, number, position);
            } else if set.slots.len() == 0 {
                let hash = hash_of(hasher, set.value.as_bytes());
                self.by_value.remove(hash, number);
                self.sets.remove(number);
            }
        }
    }

    /// Updates the posting of a slot that moved to another position of a set.
    fn repoint(&mut self, slot: u32, set: u32, position: u32) {
        let Some(place) = self.postings.get_mut(slot as usize) else { return };
        if place.set == Posting::SEVERAL {
            let Some(postings) = self.several.get_mut(place.position) else { return };
            for posting in Arc::make_mut(postings).iter_mut().filter(|posting| posting.set == set) {
                posting.position = position;
            }
        } else {
            place.position = position;
        }
    }
}

/// The number of slots above which a set is copy-on-write by page. Copying all of a larger set would delay the write.
const MAX_FLAT: usize = 1024;

/// A set of slots. The caller stores the position of each slot, so that removal needs no search.
#[derive(Clone)]
pub(crate) enum SlotSet {
    Flat(Arc<Vec<u32>>),
    Paged(Arc<CowVec<u32>>),
}

impl SlotSet {
    pub(super) fn new() -> Self {
        Self::Flat(Arc::default())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Flat(slots) => slots.len(),
            Self::Paged(slots) => slots.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        let (flat, paged) = match self {
            Self::Flat(slots) => (Some(slots.iter()), None),
            Self::Paged(slots) => (None, Some(slots.iter())),
        };
        flat.into_iter().flatten().chain(paged.into_iter().flatten()).copied()
    }

    /// Returns the slot at a position.
    pub(super) fn get(&self, position: usize) -> Option<u32> {
        match self {
            Self::Flat(slots) => slots.get(position).copied(),
            Self::Paged(slots) => slots.get(position).copied(),
        }
    }

    /// Appends a slot and returns its position.
    pub(super) fn push(&mut self, slot: u32) -> u32 {
        if let Self::Flat(slots) = self
            && slots.len() == MAX_FLAT
        {
            let mut paged = CowVec::new();
            slots.iter().for_each(|&slot| paged.push(slot));
            *self = Self::Paged(Arc::new(paged));
        }
        let position = self.len();
        match self {
            Self::Flat(slots) => Arc::make_mut(slots).push(slot),
            Self::Paged(slots) => Arc::make_mut(slots).push(slot),
        }
        // A set contains each slot at most once, and slot numbers have 32 bits.
        u32::try_from(position).unwrap_or(u32::MAX)
    }

    /// Removes the slot at a position and returns the slot that was moved into its place, if any.
    pub(super) fn swap_remove(&mut self, position: u32) -> Option<u32> {
        let position = position as usize;
        match self {
            Self::Flat(slots) => {
                if position < slots.len() {
                    Arc::make_mut(slots).swap_remove(position);
                }
                slots.get(position).copied()
            }
            Self::Paged(slots) => {
                Arc::make_mut(slots).swap_remove(position);
                slots.get(position).copied()
            }
        }
    }

    /// Sets the slot at a position.
    pub(super) fn renumber(&mut self, position: u32, slot: u32) {
        let position = position as usize;
        let place = match self {
            Self::Flat(slots) => Arc::make_mut(slots).get_mut(position),
            Self::Paged(slots) => Arc::make_mut(slots).get_mut(position),
        };
        if let Some(place) = place {
            *place = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posting_is_eight_bytes_and_a_value_set_thirty_two() {
        assert_eq!((size_of::<Posting>(), size_of::<ValueSet>()), (8, 32));
    }

    #[test]
    fn a_flat_set_and_a_paged_set_behave_the_same() {
        let mut set = SlotSet::new();
        for slot in 0..2000 {
            assert_eq!(set.push(slot), slot);
        }
        assert!(matches!(set, SlotSet::Paged(_)));
        assert_eq!(set.swap_remove(3), Some(1999), "the last slot was moved");
        assert_eq!(set.swap_remove(1998), None, "the last slot was removed");
        set.renumber(0, 5000);
        assert_eq!(set.len(), 1998);
        assert_eq!(set.iter().take(5).collect::<Vec<_>>(), [5000, 1, 2, 1999, 4]);
    }
}
