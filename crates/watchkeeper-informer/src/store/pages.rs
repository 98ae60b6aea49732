//! Pages that copies share until one of them writes.

use std::{array, hint::black_box, sync::Arc};

/// Pages a group holds.
const WIDTH: usize = 64;

type Group<P> = Arc<[Option<Arc<P>>; WIDTH]>;

/// A list of pages, in groups of 64, shared between copies until written to.
///
/// A copy clones one pointer for each 64 pages. The first write to a page that a copy still shares copies that page and
/// its group, once; all other writes are in place. So the cost of a copy falls on whoever writes, a few
/// microseconds at a time, and never grows with the list.
pub(crate) struct Pages<P> {
    groups: Vec<Group<P>>,
    count: usize,
}

impl<P> Pages<P> {
    pub(crate) fn new() -> Self {
        Self { groups: Vec::new(), count: 0 }
    }

    /// This many times the same page.
    pub(crate) fn of_one(page: &Arc<P>, count: usize) -> Self {
        // Those of the last group that are too many are never shown, and replaced when it is their turn.
        let group: Group<P> = Arc::new(array::from_fn(|_| Some(Arc::clone(page))));
        Self { groups: vec![group; count.div_ceil(WIDTH)], count }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&P> {
        self.groups.get(number / WIDTH)?[number % WIDTH].as_deref()
    }

    /// A page to write to.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut P>
    where
        P: Clone,
    {
        let group = own(self.groups.get_mut(number / WIDTH)?);
        group[number % WIDTH].as_mut().map(Arc::make_mut)
    }

    pub(crate) fn push(&mut self, page: Arc<P>) {
        if self.count == self.groups.len() * WIDTH {
            self.groups.push(Arc::new([const { None }; WIDTH]));
        }
        if let Some(group) = self.groups.last_mut() {
            own(group)[self.count % WIDTH] = Some(page);
        }
        self.count += 1;
    }

    pub(crate) fn pop(&mut self) {
        let Some(last) = self.count.checked_sub(1) else { return };
        self.count = last;
        if last.is_multiple_of(WIDTH) {
            self.groups.pop();
        } else if let Some(group) = self.groups.last_mut() {
            own(group)[last % WIDTH] = None;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        let pages = self.groups.iter().flat_map(|group| group.iter().flatten());
        pages.map(|page| &**page).take(self.count)
    }
}

/// A group to write to. One that is shared is copied, which counts a reference in each of its pages; they are read first,
/// because reads are made side by side and counting is not.
fn own<P>(group: &mut Group<P>) -> &mut [Option<Arc<P>>; WIDTH] {
    if Arc::strong_count(group) > 1 {
        for page in group.iter().flatten() {
            black_box(Arc::strong_count(page));
        }
    }
    Arc::make_mut(group)
}

impl<P> Clone for Pages<P> {
    fn clone(&self) -> Self {
        Self { groups: self.groups.clone(), count: self.count }
    }
}
