//! Copy-on-write vectors: cloning shares everything, and a write copies only the path to the written page.

use std::{array, iter::once, sync::Arc};

/// The number of children of a tree node.
///
/// The first write after a clone increments the reference count of every child of the nodes on its path, so nodes are
/// small. Their size is also one for which allocators keep free lists, so that a node freed by a reader is reused by the
/// writer without further work.
const FANOUT: usize = 8;
/// The number of pages below one branch.
const PAGES_PER_BRANCH: usize = FANOUT * FANOUT * FANOUT;

type Node<T> = [Option<Arc<T>>; FANOUT];
type Leaf<P> = Node<P>;
type Twig<P> = Node<Leaf<P>>;
type Branch<P> = Node<Twig<P>>;

/// A vector of pages of `WIDTH` elements. Clones share their pages until one of them writes.
///
/// The pages are the leaves of a tree of four levels: 512 pages below a branch, 64 below a twig, 8 below a leaf. Cloning
/// copies one pointer. The first write to a page that a clone shares copies the page and the nodes on the path to it;
/// all other writes are in place. The cost of a clone is therefore paid by the writer, about a microsecond at a time. Only
/// the list of branches grows with the vector, by one pointer for 512 pages.
pub(crate) struct CowVec<T, const WIDTH: usize = 64> {
    branches: Arc<[Arc<Branch<[T; WIDTH]>>]>,
    pages: usize,
    len: usize,
}

impl<T, const WIDTH: usize> CowVec<T, WIDTH> {
    pub(crate) fn new() -> Self {
        Self { branches: Arc::default(), pages: 0, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        // The last page is filled up with default values that are not elements.
        if index >= self.len {
            return None;
        }
        Some(&self.page(index / WIDTH)?[index % WIDTH])
    }

    /// Returns the elements from `index` to the end of its page, or an empty slice past the end of the vector.
    pub(crate) fn rest_of_page(&self, index: usize) -> &[T] {
        let end = WIDTH.min(self.len.saturating_sub(index / WIDTH * WIDTH));
        self.page(index / WIDTH).and_then(|page| page.get(index % WIDTH..end)).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages().flatten().take(self.len)
    }

    /// Returns the pages in order. The last page may end with default values that are not elements.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &[T; WIDTH]> {
        let twigs = self.branches.iter().flat_map(|branch| branch.iter().flatten());
        let leaves = twigs.flat_map(|twig| twig.iter().flatten());
        leaves.flat_map(|leaf| leaf.iter().flatten()).map(|page| &**page).take(self.pages)
    }

    fn page(&self, number: usize) -> Option<&[T; WIDTH]> {
        let branch = self.branches.get(number / PAGES_PER_BRANCH)?;
        let twig = branch[number / FANOUT / FANOUT % FANOUT].as_deref()?;
        twig[number / FANOUT % FANOUT].as_deref()?[number % FANOUT].as_deref()
    }

    /// Returns the place of a page for writing. Copies the shared nodes on the path to it.
    fn page_place(&mut self, number: usize) -> Option<&mut Option<Arc<[T; WIDTH]>>> {
        let branch = Arc::make_mut(&mut self.branches).get_mut(number / PAGES_PER_BRANCH)?;
        let twig = child(Arc::make_mut(branch), number / FANOUT / FANOUT % FANOUT);
        let leaf = child(twig, number / FANOUT % FANOUT);
        Some(&mut leaf[number % FANOUT])
    }

    fn push_page(&mut self, page: Arc<[T; WIDTH]>) {
        if self.pages == self.branches.len() * PAGES_PER_BRANCH {
            let branch: Arc<Branch<[T; WIDTH]>> = Arc::new([const { None }; FANOUT]);
            self.branches = self.branches.iter().cloned().chain(once(branch)).collect();
        }
        if let Some(place) = self.page_place(self.pages) {
            *place = Some(page);
        }
        self.pages += 1;
    }

    fn pop_page(&mut self) {
        let Some(last) = self.pages.checked_sub(1) else { return };
        self.pages = last;
        if last.is_multiple_of(PAGES_PER_BRANCH) {
            self.branches = self.branches.iter().take(last / PAGES_PER_BRANCH).cloned().collect();
        } else if let Some(place) = self.page_place(last) {
            *place = None;
        }
    }
}

impl<T: Clone + Default, const WIDTH: usize> CowVec<T, WIDTH> {
    /// Creates a vector of default values. All pages are one shared page until they are written to.
    pub(crate) fn of_defaults(len: usize) -> Self {
        // The last branch may have more pages than needed. They are not visible, and are replaced when pages are pushed.
        let branch = full_of(&full_of(&full_of(&Arc::new(default_page()))));
        let pages = len.div_ceil(WIDTH);
        Self { branches: vec![branch; pages.div_ceil(PAGES_PER_BRANCH)].into(), pages, len }
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        let page = self.page_place(index / WIDTH)?.as_mut()?;
        Some(&mut Arc::make_mut(page)[index % WIDTH])
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(WIDTH) {
            self.push_page(Arc::new(default_page()));
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
            self.pop_page();
        }
        Some(value)
    }

    /// Removes an element and moves the last element into its place.
    pub(crate) fn swap_remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let last = self.pop()?;
        Some(match self.get_mut(index) {
            Some(hole) => std::mem::replace(hole, last),
            None => last,
        })
    }
}

fn default_page<T: Default, const WIDTH: usize>() -> [T; WIDTH] {
    array::from_fn(|_| T::default())
}

/// Returns a node with the same child in every place.
fn full_of<T>(child: &Arc<T>) -> Arc<Node<T>> {
    Arc::new(array::from_fn(|_| Some(Arc::clone(child))))
}

/// Returns a child node for writing, and inserts an empty one if the place is empty.
fn child<T>(node: &mut Node<Node<T>>, index: usize) -> &mut Node<T> {
    Arc::make_mut(node[index].get_or_insert_with(|| Arc::new([const { None }; FANOUT])))
}

impl<T, const WIDTH: usize> Clone for CowVec<T, WIDTH> {
    fn clone(&self) -> Self {
        Self { branches: Arc::clone(&self.branches), pages: self.pages, len: self.len }
    }
}

const NO_ENTRY: u32 = u32::MAX;

/// A copy-on-write slab: each value has a number, which is reused after the value was removed.
#[derive(Clone)]
pub(crate) struct CowSlab<T> {
    entries: CowVec<SlabEntry<T>>,
    first_free: u32,
}

#[derive(Clone)]
enum SlabEntry<T> {
    /// A free entry, with the number of the next free entry.
    Free(u32),
    Used(T),
}

impl<T> Default for SlabEntry<T> {
    fn default() -> Self {
        Self::Free(NO_ENTRY)
    }
}

impl<T: Clone> CowSlab<T> {
    pub(crate) fn new() -> Self {
        Self { entries: CowVec::new(), first_free: NO_ENTRY }
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        match self.entries.get(number as usize)? {
            SlabEntry::Used(value) => Some(value),
            SlabEntry::Free(_) => None,
        }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.entries.get_mut(number as usize)? {
            SlabEntry::Used(value) => Some(value),
            SlabEntry::Free(_) => None,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(entry) = self.entries.get_mut(self.first_free as usize)
            && let SlabEntry::Free(next) = *entry
        {
            *entry = SlabEntry::Used(value);
            return std::mem::replace(&mut self.first_free, next);
        }
        let number = u32::try_from(self.entries.len()).unwrap_or(NO_ENTRY);
        self.entries.push(SlabEntry::Used(value));
        number
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(entry) = self.entries.get_mut(number as usize) {
            *entry = SlabEntry::Free(self.first_free);
            self.first_free = number;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| match entry {
            SlabEntry::Used(value) => Some(value),
            SlabEntry::Free(_) => None,
        })
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
        Clone,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => any::<u32>().prop_map(Step::Push),
            2 => Just(Step::Pop),
            3 => any::<usize>().prop_map(Step::SwapRemove),
            3 => (any::<usize>(), any::<u32>()).prop_map(|(index, value)| Step::Set(index, value)),
            1 => Just(Step::Clone),
        ];
        prop::collection::vec(step, 0..600)
    }

    fn behaves_like_a_vector<const WIDTH: usize>(defaults: usize, filled: u32, steps: Vec<Step>) {
        let mut ours = CowVec::<u32, WIDTH>::of_defaults(defaults);
        let mut reference: Vec<u32> = vec![0; defaults];
        for value in 0..filled {
            ours.push(value);
            reference.push(value);
        }
        let mut clones = Vec::new();
        for step in steps {
            match step {
                Step::Push(value) => {
                    ours.push(value);
                    reference.push(value);
                }
                Step::Pop => assert_eq!(ours.pop(), reference.pop()),
                Step::SwapRemove(index) => {
                    let index = index % (reference.len() + 1);
                    let expected = (index < reference.len()).then(|| reference.swap_remove(index));
                    assert_eq!(ours.swap_remove(index), expected);
                }
                Step::Set(index, value) => {
                    let index = index % (reference.len() + 1);
                    let expected = reference.get_mut(index).map(|place| std::mem::replace(place, value));
                    let old = ours.get_mut(index).map(|place| std::mem::replace(place, value));
                    assert_eq!(old, expected);
                }
                Step::Clone => clones.push((ours.clone(), reference.clone())),
            }
            assert_eq!(ours.len(), reference.len());
        }
        clones.push((ours, reference));
        for (clone, expected) in clones {
            let mut by_page = Vec::new();
            while !clone.rest_of_page(by_page.len()).is_empty() {
                by_page.extend_from_slice(clone.rest_of_page(by_page.len()));
            }
            assert_eq!(by_page, expected);
            assert_eq!(clone.iter().copied().collect::<Vec<_>>(), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_cow_vec_behaves_like_a_vector_and_its_clones_do_not_change(
            defaults in 0..9000_usize,
            filled in 0..5000_u32,
            steps in steps(),
        ) {
            behaves_like_a_vector::<64>(defaults, filled, steps.clone());
            behaves_like_a_vector::<8>(defaults, filled, steps);
        }
    }

    #[test]
    fn a_write_copies_the_page_that_a_clone_shares_and_no_other() {
        let mut ours = CowVec::<u32>::new();
        (0..10_000_u32).for_each(|value| ours.push(value));
        let clone = ours.clone();
        *ours.get_mut(5000).unwrap() = 0;
        let is_shared = |index: usize| std::ptr::eq(ours.get(index).unwrap(), clone.get(index).unwrap());
        let copied: Vec<usize> = (0..10_000).filter(|&index| !is_shared(index)).collect();
        assert_eq!(copied, (4992..5056).collect::<Vec<_>>(), "the page of element 5000");
    }

    #[test]
    fn empty_pages_are_freed() {
        let mut ours = CowVec::<u32>::new();
        (0..5000_u32).for_each(|value| ours.push(value));
        (0..4990).for_each(|_| _ = ours.pop());
        assert_eq!(ours.pages().count(), 1);
    }

    #[test]
    fn slab_numbers_are_reused_and_clones_keep_their_values() {
        let mut slab = CowSlab::new();
        let numbers: Vec<u32> = (0..100).map(|value| slab.insert(value)).collect();
        let clone = slab.clone();
        slab.remove(numbers[7]);
        slab.remove(numbers[90]);
        assert_eq!((slab.get(7), slab.iter().count()), (None, 98));
        assert_eq!((slab.insert(1000), slab.insert(1001), slab.insert(1002)), (90, 7, 100));
        assert_eq!((slab.get(7), slab.get(90)), (Some(&1001), Some(&1000)));
        assert_eq!((clone.get(7), clone.get(90), clone.iter().count()), (Some(&7), Some(&90), 100));
    }
}
