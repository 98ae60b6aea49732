//! A vector that is cheap to copy and cheap to change afterwards.

use std::{array, sync::Arc};

use super::pages::Pages;

/// Elements a page holds.
pub(crate) const WIDTH: usize = 64;

/// A vector in pages of 64 elements, shared between copies until written to. See [`Pages`] for what that costs.
pub(crate) struct Paged<T> {
    pages: Pages<[T; WIDTH]>,
    len: usize,
}

impl<T> Paged<T> {
    pub(crate) fn new() -> Self {
        Self { pages: Pages::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        // Elements past the end exist as defaults; they are not ours to show.
        if at >= self.len {
            return None;
        }
        Some(&self.pages.get(at / WIDTH)?[at % WIDTH])
    }

    /// The elements from this one to the end of its page; none past the end of the vector.
    pub(crate) fn run(&self, at: usize) -> &[T] {
        let end = WIDTH.min(self.len.saturating_sub(at / WIDTH * WIDTH));
        self.pages.get(at / WIDTH).and_then(|page| page.get(at % WIDTH..end)).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten().take(self.len)
    }
}

impl<T: Clone + Default> Paged<T> {
    /// A vector of defaults. They are all in one page, which each write to a new place copies.
    pub(crate) fn of_defaults(len: usize) -> Self {
        Self { pages: Pages::of_one(&Arc::new(defaults()), len.div_ceil(WIDTH)), len }
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        Some(&mut self.pages.get_mut(at / WIDTH)?[at % WIDTH])
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(WIDTH) {
            self.pages.push(Arc::new(defaults()));
        }
        self.len += 1;
        if let Some(place) = self.get_mut(self.len - 1) {
            *place = value;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let value = std::mem::take(self.get_mut(last)?);
        self.len = last;
        if last.is_multiple_of(WIDTH) {
            self.pages.pop();
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

fn defaults<T: Default>() -> [T; WIDTH] {
    array::from_fn(|_| T::default())
}

impl<T> Clone for Paged<T> {
    fn clone(&self) -> Self {
        Self { pages: self.pages.clone(), len: self.len }
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
                let mut in_runs = Vec::new();
                while !copy.run(in_runs.len()).is_empty() {
                    in_runs.extend_from_slice(copy.run(in_runs.len()));
                }
                prop_assert_eq!(&in_runs, &expected);
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
        assert_eq!(paged.pages.iter().count(), 1);
    }
}
