//! Where the heap of delays lies in memory.

use std::ops::{Index, IndexMut};

use super::delays::Delay;

/// Children of a heap node.
pub(super) const CHILDREN: usize = 4;

/// Siblings: one cache line, so that choosing the earliest of them is one trip to memory.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Family([Delay; CHILDREN]);

impl Family {
    const EMPTY: Self = Self([Delay::NONE; CHILDREN]);
}

/// Families in a chunk: a page of memory.
const CHUNK: usize = 64;

/// The places of a heap, the root first, as in a vector; but their number grows and shrinks without anything being moved.
/// A vector that has to grow copies all of them while the queue is locked, and no key is handed out meanwhile.
///
/// The root is the last member of the first family, so that the children of every place are a family: that of the place's
/// number and one.
#[derive(Debug, Default)]
pub(super) struct Places {
    chunks: Vec<Box<[Family; CHUNK]>>,
    len: usize,
}

/// What comes before the root.
const BEFORE_ROOT: usize = CHILDREN - 1;

impl Places {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Delay> {
        (self.len > 0).then(|| &self[0])
    }

    /// The children of a place, in order. The first is at four times its number and one.
    #[inline]
    pub(super) fn children(&self, place: usize) -> &[Delay] {
        let count = self.len.saturating_sub(place * CHILDREN + 1).min(CHILDREN);
        let family = place + 1;
        self.chunks.get(family / CHUNK).map_or(&[], |chunk| &chunk[family % CHUNK].0[..count])
    }

    pub(super) fn push(&mut self, delay: Delay) {
        if self.chunks.len() * CHUNK * CHILDREN <= self.len + BEFORE_ROOT {
            self.chunks.push(Box::new([Family::EMPTY; CHUNK]));
        }
        self.len += 1;
        let last = self.len - 1;
        self[last] = delay;
    }

    pub(super) fn pop(&mut self) -> Option<Delay> {
        self.len = self.len.checked_sub(1)?;
        Some(self[self.len])
    }

    /// Gives back the memory of places that are not used.
    pub(super) fn shrink(&mut self) {
        let members = if self.len == 0 { 0 } else { self.len + BEFORE_ROOT };
        self.chunks.truncate(members.div_ceil(CHUNK * CHILDREN));
        self.chunks.shrink_to_fit();
    }
}

/// The chunk a place is in, the family there and the member of that.
#[inline]
fn position(place: usize) -> (usize, usize, usize) {
    let member = place + BEFORE_ROOT;
    (member / CHILDREN / CHUNK, member / CHILDREN % CHUNK, member % CHILDREN)
}

impl Index<usize> for Places {
    type Output = Delay;

    #[inline]
    fn index(&self, place: usize) -> &Delay {
        let (chunk, family, member) = position(place);
        &self.chunks[chunk][family].0[member]
    }
}

impl IndexMut<usize> for Places {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut Delay {
        let (chunk, family, member) = position(place);
        &mut self.chunks[chunk][family].0[member]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_a_line_and_a_chunk_a_page() {
        assert_eq!((size_of::<Family>(), size_of::<[Family; CHUNK]>()), (64, 4096));
    }

    #[test]
    fn the_children_of_a_place_are_those_of_a_heap_in_a_vector() {
        let mut places = Places::default();
        for len in 0..2000 {
            assert_eq!(places.len(), len);
            for place in (0..len + 2).step_by(7) {
                let wanted: Vec<*const Delay> = (place * CHILDREN + 1..=place * CHILDREN + CHILDREN)
                    .filter(|&child| child < len)
                    .map(|child| &raw const places[child])
                    .collect();
                let children: Vec<*const Delay> =
                    places.children(place).iter().map(|child| &raw const *child).collect();
                assert_eq!(children, wanted, "of place {place} of {len}");
            }
            places.push(Delay::NONE);
        }
    }

    #[test]
    fn memory_that_is_not_used_is_given_back_when_asked() {
        let mut places = Places::default();
        (0..2000).for_each(|_| places.push(Delay::NONE));
        (0..1990).for_each(|_| assert!(places.pop().is_some()));
        assert_eq!(places.chunks.len(), 8, "what was used once may be again");
        places.shrink();
        assert_eq!(places.chunks.len(), 1);
        (0..10).for_each(|_| assert!(places.pop().is_some()));
        assert!(places.pop().is_none() && places.first().is_none());
        places.shrink();
        assert_eq!(places.chunks.capacity(), 0);
        places.push(Delay::NONE);
        assert_eq!((places.len(), places.chunks.len()), (1, 1));
    }
}
