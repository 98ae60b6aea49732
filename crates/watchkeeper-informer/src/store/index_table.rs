//! One index: which slots have which value.

use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{
    paged::Paged,
    slab::Slab,
    slot_set::SlotSet,
    table::{Table, hash_of},
    values::Values,
};

/// From value to slots, and back from a slot to its values.
///
/// The way back is what makes removal independent of the index function: what was put in is taken out, even if
/// the function would say something else today. It costs eight bytes a slot.
#[derive(Clone)]
pub(crate) struct IndexTable {
    sets: Slab<ValueSet>,
    by_value: Table,
    /// For each slot, where it is listed.
    postings: Paged<Posting>,
    /// The postings of slots with more than one value.
    several: Slab<Arc<Vec<Posting>>>,
}

/// A value and the slots that have it: never none, the set goes with its last slot.
#[derive(Clone)]
struct ValueSet {
    value: Arc<str>,
    slots: SlotSet,
}

/// Where a slot is listed: the number of a value's set, and the position in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Posting {
    set: u32,
    position: u32,
}

impl Posting {
    const NOWHERE: Self = Self { set: u32::MAX, position: 0 };
    /// The set of a slot that is in more than one; the position is that of the list in `several`.
    const SEVERAL: u32 = u32::MAX - 1;
}

impl Default for Posting {
    fn default() -> Self {
        Self::NOWHERE
    }
}

impl IndexTable {
    /// An index over this many slots, none of which has a value yet.
    pub(crate) fn new(slots: usize) -> Self {
        let postings = Paged::of_defaults(slots);
        Self { sets: Slab::new(), by_value: Table::new(), postings, several: Slab::new() }
    }

    /// The slots that have a value.
    pub(crate) fn slots(&self, hasher: &RandomState, value: &str) -> Option<&SlotSet> {
        let set = self.find(hash_of(hasher, value), value)?;
        Some(&self.sets.get(set)?.slots)
    }

    /// The values some slot has.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<str>> {
        self.sets.iter().map(|set| &set.value)
    }

    /// A slot was added behind the others.
    pub(crate) fn push_slot(&mut self) {
        self.postings.push(Posting::NOWHERE);
    }

    /// Has a slot be listed under these values and no others.
    pub(crate) fn set(&mut self, hasher: &RandomState, slot: u32, values: &Values) {
        self.clear(hasher, slot);
        let posting = match values {
            Values::None => return,
            Values::One(value) => self.list(hasher, slot, value),
            Values::Several(values) => {
                let postings = values.iter().map(|value| self.list(hasher, slot, value)).collect();
                Posting { set: Posting::SEVERAL, position: self.several.insert(Arc::new(postings)) }
            }
        };
        if let Some(place) = self.postings.get_mut(slot as usize) {
            *place = posting;
        }
    }

    /// A slot was taken out and the last one took its number.
    pub(crate) fn swap_remove_slot(&mut self, hasher: &RandomState, slot: u32) {
        self.clear(hasher, slot);
        self.postings.swap_remove(slot as usize);
        for posting in self.of(slot) {
            if let Some(set) = self.sets.get_mut(posting.set) {
                set.slots.renumber(posting.position, slot);
            }
        }
    }

    fn find(&self, hash: u32, value: &str) -> Option<u32> {
        self.by_value.find(hash, |set| self.sets.get(set).is_some_and(|set| &*set.value == value))
    }

    /// Whether the slot is listed under exactly these values.
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

    /// Every place a slot is listed at.
    fn of(&self, slot: u32) -> Vec<Posting> {
        match self.postings.get(slot as usize) {
            None | Some(&Posting::NOWHERE) => Vec::new(),
            Some(&posting) => {
                self.several(posting).map_or_else(|| vec![posting], |postings| Vec::clone(postings))
            }
        }
    }

    /// Lists a slot under a value and says where.
    fn list(&mut self, hasher: &RandomState, slot: u32, value: &str) -> Posting {
        let hash = hash_of(hasher, value);
        let set = self.find(hash, value).unwrap_or_else(|| {
            let set = self.sets.insert(ValueSet { value: value.into(), slots: SlotSet::new() });
            self.by_value.insert(hash, set);
            set
        });
        let position = self.sets.get_mut(set).map_or(0, |set| set.slots.push(slot));
        Posting { set, position }
    }

    /// Takes a slot out of every set it is in, and the sets with it that it leaves empty.
    fn clear(&mut self, hasher: &RandomState, slot: u32) {
        let postings = self.of(slot);
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
                let hash = hash_of(hasher, &*set.value);
                self.by_value.remove(hash, number);
                self.sets.remove(number);
            }
        }
    }

    /// A slot moved to another position of a set.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posting_is_eight_bytes_and_a_value_set_thirty_two() {
        assert_eq!((size_of::<Posting>(), size_of::<ValueSet>()), (8, 32));
    }
}
