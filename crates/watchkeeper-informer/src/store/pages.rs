//! Pages that copies share until one of them writes.

use std::{array, hint::black_box, iter::once, sync::Arc};

/// Children a node has. A write after a copy counts a reference in every child of the nodes on its way, many of which the
/// last copy has just left on another processor, so nodes are small. They are also of a size that allocators keep in
/// lists of their own: what a reader frees is not the writer's to sort.
const WIDTH: usize = 8;
/// Pages below one branch.
const BELOW: usize = WIDTH * WIDTH * WIDTH;

type Node<T> = [Option<Arc<T>>; WIDTH];
type Leaf<P> = Node<P>;
type Twig<P> = Node<Leaf<P>>;
type Branch<P> = Node<Twig<P>>;

/// A list of pages, shared between copies until written to.
///
/// A tree of four levels: 512 pages a branch, 64 a twig, 8 a leaf. A copy clones one pointer. The first write to a page
/// that a copy still shares copies that page and the nodes on the way to it, once; all other writes are in place. So
/// the cost of a copy falls on whoever writes, about a microsecond at a time, and next to nothing of it grows with the
/// list: only the list of branches does, by a pointer for 512 pages.
pub(crate) struct Pages<P> {
    branches: Arc<[Arc<Branch<P>>]>,
    count: usize,
}

impl<P> Pages<P> {
    pub(crate) fn new() -> Self {
        Self { branches: Arc::default(), count: 0 }
    }

    /// This many times the same page.
    pub(crate) fn of_one(page: &Arc<P>, count: usize) -> Self {
        // Those of the last branch that are too many are never shown, and replaced when it is their turn.
        let branch = full_of(&full_of(&full_of(page)));
        Self { branches: vec![branch; count.div_ceil(BELOW)].into(), count }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&P> {
        let twig = self.branches.get(number / BELOW)?[number / WIDTH / WIDTH % WIDTH].as_deref()?;
        twig[number / WIDTH % WIDTH].as_deref()?[number % WIDTH].as_deref()
    }

    /// A page to write to.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut P>
    where
        P: Clone,
    {
        self.place(number)?.as_mut().map(Arc::make_mut)
    }

    pub(crate) fn push(&mut self, page: Arc<P>) {
        if self.count == self.branches.len() * BELOW {
            let branch: Arc<Branch<P>> = Arc::new([const { None }; WIDTH]);
            self.branches = self.branches.iter().cloned().chain(once(branch)).collect();
        }
        if let Some(place) = self.place(self.count) {
            *place = Some(page);
        }
        self.count += 1;
    }

    pub(crate) fn pop(&mut self) {
        let Some(last) = self.count.checked_sub(1) else { return };
        self.count = last;
        if last.is_multiple_of(BELOW) {
            self.branches = self.branches.iter().take(last / BELOW).cloned().collect();
        } else if let Some(place) = self.place(last) {
            *place = None;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        let twigs = self.branches.iter().flat_map(|branch| branch.iter().flatten());
        let leaves = twigs.flat_map(|twig| twig.iter().flatten());
        leaves.flat_map(|leaf| leaf.iter().flatten()).map(|page| &**page).take(self.count)
    }

    /// Where a page is or goes, to write to.
    fn place(&mut self, number: usize) -> Option<&mut Option<Arc<P>>> {
        if Arc::strong_count(&self.branches) > 1 {
            self.branches.iter().for_each(announce);
        }
        let branch = own(Arc::make_mut(&mut self.branches).get_mut(number / BELOW)?);
        let twig = child(branch, number / WIDTH / WIDTH % WIDTH);
        let leaf = child(twig, number / WIDTH % WIDTH);
        Some(&mut leaf[number % WIDTH])
    }
}

/// A node whose children are all the same.
fn full_of<T>(child: &Arc<T>) -> Arc<Node<T>> {
    Arc::new(array::from_fn(|_| Some(Arc::clone(child))))
}

/// A child of a node, to write to. One that is not there is made.
fn child<T>(node: &mut Node<Node<T>>, at: usize) -> &mut Node<T> {
    own(node[at].get_or_insert_with(|| Arc::new([const { None }; WIDTH])))
}

/// A node to write to. One that is shared is copied, which counts a reference in each of its children; they are read first,
/// because reads are made side by side and counting is not.
fn own<T>(node: &mut Arc<Node<T>>) -> &mut Node<T> {
    if Arc::strong_count(node) > 1 {
        node.iter().flatten().for_each(announce);
    }
    Arc::make_mut(node)
}

fn announce<T: ?Sized>(child: &Arc<T>) {
    black_box(Arc::strong_count(child));
}

impl<P> Clone for Pages<P> {
    fn clone(&self) -> Self {
        Self { branches: Arc::clone(&self.branches), count: self.count }
    }
}
