//! A vector that is cheap to copy and cheap to change afterwards.

use std::{array, sync::Arc};

/// Elements a page holds, and pages a group.
pub(crate) const WIDTH: usize = 64;

type Page<T> = Arc<[T; WIDTH]>;
type Group<T> = Arc<[Option<Page<T>>; WIDTH]>;

/// A vector in pages of 64 elements and groups of 64 pages, shared between copies until written to.
///
/// A copy clones one pointer for each 4096 elements. The first write to a page that a copy still shares copies that
/// page and its group, once; all other writes are in place. So the cost of a copy falls on whoever writes, a
/// few microseconds at a time, and never grows with the vector.
pub(crate) struct Paged<T> {
    groups: Vec<Group<T>>,
    len: usize,
}

impl<T> Paged<T> {
    pub(crate) fn new() -> Self {
        Self { groups: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        // Elements past the end exist as defaults; they are not ours to show.
        if at >= self.len {
            return None;
        }
        Some(&self.page(at / WIDTH)?[at % WIDTH])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages().flatten()
    }

    /// The elements, a page at a time.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &[T]> {
        let pages = self.groups.iter().flat_map(|group| group.iter().flatten());
        pages.zip((0..self.len).step_by(WIDTH)).map(|(page, first)| &page[..WIDTH.min(self.len - first)])
    }

    fn page(&self, number: usize) -> Option<&[T; WIDTH]> {
        self.groups.get(number / WIDTH)?[number % WIDTH].as_deref()
    }
}

impl<T: Clone + Default> Paged<T> {
    /// A vector of defaults. They are all in one page, which each write to a new place copies.
    pub(crate) fn of_defaults(len: usize) -> Self {
        let page: Page<T> = Arc::new(array::from_fn(|_| T::default()));
        let group: Group<T> = Arc::new(array::from_fn(|_| Some(Arc::clone(&page))));
        Self { groups: vec![group; len.div_ceil(WIDTH * WIDTH)], len }
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        let number = at / WIDTH;
        let group = Arc::make_mut(self.groups.get_mut(number / WIDTH)?);
        let page = Arc::make_mut(group[number % WIDTH].as_mut()?);
        Some(&mut page[at % WIDTH])
    }

    pub(crate) fn push(&mut self, value: T) {
        let (number, at) = (self.len / WIDTH, self.len % WIDTH);
        if number / WIDTH == self.groups.len() {
            self.groups.push(Arc::new([const { None }; WIDTH]));
        }
        let group = Arc::make_mut(&mut self.groups[number / WIDTH]);
        let page = group[number % WIDTH].get_or_insert_with(|| Arc::new(array::from_fn(|_| T::default())));
        Arc::make_mut(page)[at] = value;
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let value = std::mem::take(self.get_mut(last)?);
        self.len = last;
        if last.is_multiple_of(WIDTH) {
            let number = last / WIDTH;
            if number.is_multiple_of(WIDTH) {
                self.groups.pop();
            } else {
                Arc::make_mut(&mut self.groups[number / WIDTH])[number % WIDTH] = None;
            }
        }
        Some(value)
    }

    /// Takes an element out; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, at: usize) -> Option<T> {
        if at >= self.len {
            return None;
        }
        let last = self.pop()?;
        Some(match self.get_mut(at) {
            Some(hole) => std::mem::replace(hole, last),
            None => last,
        })
    }
}

impl<T> Clone for Paged<T> {
    fn clone(&self) -> Self {
        Self { groups: self.groups.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u32),
        Pop,
        SwapRemove(usize),
        Set(usize, u32),
        Copy,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => any::<u32>().prop_map(Step::Push),
            2 => Just(Step::Pop),
            3 => any::<usize>().prop_map(Step::SwapRemove),
            3 => (any::<usize>(), any::<u32>()).prop_map(|(at, value)| Step::Set(at, value)),
            1 => Just(Step::Copy),
        ];
        prop::collection::vec(step, 0..600)
    }

    fn contents(paged: &Paged<u32>) -> Vec<u32> {
        paged.iter().copied().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_vector_and_its_copies_do_not_change(
            defaults in 0..9000_usize,
            filled in 0..5000_u32,
            steps in steps(),
        ) {
            let mut ours = Paged::of_defaults(defaults);
            let mut reference: Vec<u32> = vec![0; defaults];
            for value in 0..filled {
                ours.push(value);
                reference.push(value);
            }
            let mut copies = Vec::new();
            for step in steps {
                match step {
                    Step::Push(value) => {
                        ours.push(value);
                        reference.push(value);
                    }
                    Step::Pop => prop_assert_eq!(ours.pop(), reference.pop()),
                    Step::SwapRemove(at) => {
                        let at = at % (reference.len() + 1);
                        let expected = (at < reference.len()).then(|| reference.swap_remove(at));
                        prop_assert_eq!(ours.swap_remove(at), expected);
                    }
                    Step::Set(at, value) => {
                        let at = at % (reference.len() + 1);
                        let expected = reference.get_mut(at).map(|place| std::mem::replace(place, value));
                        prop_assert_eq!(ours.get_mut(at).map(|place| std::mem::replace(place, value)), expected);
                    }
                    Step::Copy => copies.push((ours.clone(), reference.clone())),
                }
                prop_assert_eq!(ours.len(), reference.len());
            }
            copies.push((ours, reference));
            for (copy, expected) in copies {
                prop_assert_eq!(contents(&copy), expected);
            }
        }
    }

    #[test]
    fn a_write_copies_what_a_copy_shares_and_nothing_else() {
        let mut paged = Paged::new();
        (0..10_000_u32).for_each(|value| paged.push(value));
        let copy = paged.clone();
        *paged.get_mut(5000).unwrap() = 0;
        let is_shared = |at: usize| std::ptr::eq(paged.get(at).unwrap(), copy.get(at).unwrap());
        let apart: Vec<usize> = (0..10_000).filter(|&at| !is_shared(at)).collect();
        assert_eq!(apart, (4992..5056).collect::<Vec<_>>(), "one page, that of element 5000");
    }

    #[test]
    fn pages_are_given_back_when_emptied() {
        let mut paged = Paged::new();
        (0..5000_u32).for_each(|value| paged.push(value));
        (0..4990).for_each(|_| _ = paged.pop());
        assert_eq!(paged.groups.len(), 1);
        assert_eq!(paged.groups[0].iter().flatten().count(), 1);
    }
}
