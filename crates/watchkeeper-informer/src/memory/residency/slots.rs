//! Numbered slots in doubly linked lists, so that any slot is removed in constant time.

/// A list of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// Objects that were read once.
    Probation,
    /// Objects that were read again.
    Main,
    /// Objects that are selected for eviction and have not been dropped yet.
    Detached,
}

const LISTS: usize = 3;

/// The number of no slot.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Slot<T> {
    /// The list that contains the slot, and its value. `None` while the slot is free.
    used: Option<(List, T)>,
    bytes: usize,
    previous: u32,
    /// The next slot of the list, or the next free slot.
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
    len: usize,
    bytes: usize,
}

/// Values in numbered slots. Each slot is in one list, whose order is that of insertion.
#[derive(Debug)]
pub(super) struct Slots<T> {
    all: Vec<Slot<T>>,
    lists: [Ends; LISTS],
    first_free: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        let empty = Ends { first: NONE, last: NONE, len: 0, bytes: 0 };
        Self { all: Vec::new(), lists: [empty; LISTS], first_free: NONE }
    }
}

impl<T> Slots<T> {
    /// Returns the number of slots in a list.
    pub(super) fn len(&self, list: List) -> usize {
        self.lists[list as usize].len
    }

    /// Returns the sum of the bytes of a list.
    pub(super) fn bytes(&self, list: List) -> usize {
        self.lists[list as usize].bytes
    }

    /// Adds a value at the end of a list and returns its slot, or `None` if all 2^32 - 1 slots are used.
    pub(super) fn insert(&mut self, list: List, value: T, bytes: usize) -> Option<u32> {
        let slot = Slot { used: Some((list, value)), bytes, previous: NONE, next: NONE };
        let number = self.first_free;
        let number = if let Some(free) = self.all.get_mut(number as usize) {
            self.first_free = free.next;
            *free = slot;
            number
        } else {
            let number = u32::try_from(self.all.len()).ok().filter(|number| *number != NONE)?;
            self.all.push(slot);
            number
        };
        self.link(number, list);
        Some(number)
    }

    /// Returns the first slot of a list and its value.
    pub(super) fn front(&self, list: List) -> Option<(u32, &T)> {
        let number = self.lists[list as usize].first;
        let (_, value) = self.all.get(number as usize)?.used.as_ref()?;
        Some((number, value))
    }

    /// Moves a slot to the end of a list.
    pub(super) fn move_to(&mut self, number: u32, list: List) {
        self.unlink(number);
        if let Some(Slot { used: Some((of_slot, _)), .. }) = self.all.get_mut(number as usize) {
            *of_slot = list;
            self.link(number, list);
        }
    }

    /// Frees a slot. A free slot is ignored.
    pub(super) fn remove(&mut self, number: u32) {
        self.unlink(number);
        let Some(slot) = self.all.get_mut(number as usize) else { return };
        if slot.used.take().is_some() {
            slot.next = self.first_free;
            self.first_free = number;
        }
        // All memory is released with the last slot, which is what remains after a large budget was reduced to none.
        if self.lists.iter().all(|list| list.len == 0) {
            *self = Self::default();
        }
    }

    fn link(&mut self, number: u32, list: List) {
        let ends = &mut self.lists[list as usize];
        let last = std::mem::replace(&mut ends.last, number);
        if ends.first == NONE {
            ends.first = number;
        }
        ends.len += 1;
        if let Some(slot) = self.all.get_mut(number as usize) {
            slot.previous = last;
            slot.next = NONE;
            ends.bytes += slot.bytes;
        }
        if let Some(slot) = self.all.get_mut(last as usize) {
            slot.next = number;
        }
    }

    fn unlink(&mut self, number: u32) {
        let Some(Slot { used: Some((list, _)), bytes, previous, next }) = self.all.get(number as usize)
        else {
            return;
        };
        let (list, bytes, previous, next) = (*list, *bytes, *previous, *next);
        let ends = &mut self.lists[list as usize];
        ends.len -= 1;
        ends.bytes -= bytes;
        if ends.first == number {
            ends.first = next;
        }
        if ends.last == number {
            ends.last = previous;
        }
        if let Some(slot) = self.all.get_mut(previous as usize) {
            slot.next = next;
        }
        if let Some(slot) = self.all.get_mut(next as usize) {
            slot.previous = previous;
        }
    }
}
