//! Numbered places for values that come and go, cheap to copy.

use super::paged::Paged;

const NO_PLACE: u32 = u32::MAX;

/// Values under numbers that stay theirs until they are removed, and are then used again.
#[derive(Clone)]
pub(crate) struct Slab<T> {
    places: Paged<Place<T>>,
    first_free: u32,
}

#[derive(Clone)]
enum Place<T> {
    /// Nothing here; the number is the next free place.
    Free(u32),
    Used(T),
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self::Free(NO_PLACE)
    }
}

impl<T: Clone> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { places: Paged::new(), first_free: NO_PLACE }
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        match self.places.get(number as usize)? {
            Place::Used(value) => Some(value),
            Place::Free(_) => None,
        }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.places.get_mut(number as usize)? {
            Place::Used(value) => Some(value),
            Place::Free(_) => None,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(place) = self.places.get_mut(self.first_free as usize)
            && let Place::Free(next) = *place
        {
            *place = Place::Used(value);
            return std::mem::replace(&mut self.first_free, next);
        }
        let number = u32::try_from(self.places.len()).unwrap_or(NO_PLACE);
        self.places.push(Place::Used(value));
        number
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(place) = self.places.get_mut(number as usize) {
            *place = Place::Free(self.first_free);
            self.first_free = number;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| match place {
            Place::Used(value) => Some(value),
            Place::Free(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_copies_keep_theirs() {
        let mut slab = Slab::new();
        let numbers: Vec<u32> = (0..100).map(|value| slab.insert(value)).collect();
        let copy = slab.clone();
        slab.remove(numbers[7]);
        slab.remove(numbers[90]);
        assert_eq!((slab.get(7), slab.iter().count()), (None, 98));
        assert_eq!((slab.insert(1000), slab.insert(1001), slab.insert(1002)), (90, 7, 100));
        assert_eq!((slab.get(7), slab.get(90)), (Some(&1001), Some(&1000)));
        assert_eq!((copy.get(7), copy.get(90), copy.iter().count()), (Some(&7), Some(&90), 100));
    }
}
