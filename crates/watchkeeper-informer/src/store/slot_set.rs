//! The slots that share one index value.

use std::sync::Arc;

use super::paged::Paged;

/// Above this many slots a set is kept in pages: copying it whole for one change would take longer than a write may.
const FEW: usize = 1024;

/// A set of slots, each at a position its owner remembers, so that taking one out is not a search.
#[derive(Clone)]
pub(crate) enum SlotSet {
    Few(Arc<Vec<u32>>),
    Lots(Arc<Paged<u32>>),
}

impl SlotSet {
    pub(crate) fn new() -> Self {
        Self::Few(Arc::default())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(slots) => slots.len(),
            Self::Lots(slots) => slots.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let (few, lots) = match self {
            Self::Few(slots) => (Some(slots.iter()), None),
            Self::Lots(slots) => (None, Some(slots.iter())),
        };
        few.into_iter().flatten().chain(lots.into_iter().flatten()).copied()
    }

    /// The slot at a position.
    pub(crate) fn get(&self, position: usize) -> Option<u32> {
        match self {
            Self::Few(slots) => slots.get(position).copied(),
            Self::Lots(slots) => slots.get(position).copied(),
        }
    }

    /// Adds a slot and says at which position.
    pub(crate) fn push(&mut self, slot: u32) -> u32 {
        if let Self::Few(slots) = self
            && slots.len() == FEW
        {
            let mut paged = Paged::new();
            slots.iter().for_each(|&slot| paged.push(slot));
            *self = Self::Lots(Arc::new(paged));
        }
        let position = self.len();
        match self {
            Self::Few(slots) => Arc::make_mut(slots).push(slot),
            Self::Lots(slots) => Arc::make_mut(slots).push(slot),
        }
        // A slot is in a set once and slots are 32 bits wide.
        u32::try_from(position).unwrap_or(u32::MAX)
    }

    /// Takes the slot at a position out; names the slot that is there now, if another one moved in.
    pub(crate) fn swap_remove(&mut self, position: u32) -> Option<u32> {
        let position = position as usize;
        match self {
            Self::Few(slots) => {
                if position < slots.len() {
                    Arc::make_mut(slots).swap_remove(position);
                }
                slots.get(position).copied()
            }
            Self::Lots(slots) => {
                Arc::make_mut(slots).swap_remove(position);
                slots.get(position).copied()
            }
        }
    }

    /// The slot at a position has another number now.
    pub(crate) fn renumber(&mut self, position: u32, slot: u32) {
        let position = position as usize;
        let place = match self {
            Self::Few(slots) => Arc::make_mut(slots).get_mut(position),
            Self::Lots(slots) => Arc::make_mut(slots).get_mut(position),
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
    fn few_or_lots_is_the_same_set() {
        let mut set = SlotSet::new();
        for slot in 0..2000 {
            assert_eq!(set.push(slot), slot);
        }
        assert!(matches!(set, SlotSet::Lots(_)));
        assert_eq!(set.swap_remove(3), Some(1999), "the last one moved in");
        assert_eq!(set.swap_remove(1998), None, "the last one was taken");
        set.renumber(0, 5000);
        assert_eq!(set.len(), 1998);
        assert_eq!(set.iter().take(5).collect::<Vec<_>>(), [5000, 1, 2, 1999, 4]);
    }
}
