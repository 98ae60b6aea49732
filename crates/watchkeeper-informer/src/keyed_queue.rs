//! A queue in which each key stands once.

use std::{collections::VecDeque, fmt, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::key::KeyRef;

/// What has a key.
pub(crate) trait Keyed {
    fn key(&self) -> KeyRef<'_>;
}

/// Entries in order of arrival, found by their key, which is read from the entry itself.
///
/// An entry that is taken out of the middle leaves a gap. Gaps are closed before they outnumber the entries, so
/// memory follows the entries there are, not those that came and went.
pub(crate) struct KeyedQueue<T> {
    entries: VecDeque<Option<T>>,
    /// The number of the first place. Places are numbered in order, and a number outlives changes at either
    /// end.
    first: u64,
    len: usize,
    places: HashTable<Place>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    number: u64,
}

/// Below this many places gaps are not worth closing.
const FEW: usize = 32;
/// Room for this many entries is kept when the queue is empty.
const KEPT_ROOM: usize = 1024;

impl<T: Keyed> KeyedQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            len: 0,
            places: HashTable::new(),
            hasher: RandomState::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get_mut(&mut self, key: KeyRef<'_>) -> Option<&mut T> {
        let index = self.find(key)?;
        self.entries.get_mut(index)?.as_mut()
    }

    pub(crate) fn contains(&self, key: KeyRef<'_>) -> bool {
        self.find(key).is_some()
    }

    /// Makes room for this many more entries, and no more than that.
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.entries.reserve_exact(additional);
        self.places.reserve(additional, |place| place.hash);
    }

    /// Appends an entry whose key is not in the queue.
    pub(crate) fn push_back(&mut self, entry: T) {
        let number = self.first.wrapping_add(self.entries.len() as u64);
        self.note(&entry, number);
        self.entries.push_back(Some(entry));
    }

    /// Puts an entry whose key is not in the queue before all others.
    pub(crate) fn push_front(&mut self, entry: T) {
        self.first = self.first.wrapping_sub(1);
        self.note(&entry, self.first);
        self.entries.push_front(Some(entry));
    }

    /// The entry that is next.
    pub(crate) fn front(&self) -> Option<&T> {
        self.entries.front()?.as_ref()
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let entry = self.entries.pop_front()??;
        let (hash, number) = (self.hasher.hash_one(entry.key()), self.first);
        self.first = self.first.wrapping_add(1);
        self.forget(hash, number);
        self.trim();
        Some(entry)
    }

    pub(crate) fn remove(&mut self, key: KeyRef<'_>) -> Option<T> {
        let index = self.find(key)?;
        let number = self.first.wrapping_add(index as u64);
        self.forget(self.hasher.hash_one(key), number);
        let entry = self.entries.get_mut(index)?.take();
        self.trim();
        entry
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// The entries in order, to be changed in what is not their key.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    fn find(&self, key: KeyRef<'_>) -> Option<usize> {
        // Most queues are empty most of the time; then not even the hash is needed.
        if self.len == 0 {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let place = self.places.find(hash, |place| {
            place.hash == hash
                && self
                    .entries
                    .get(self.index(place.number))
                    .and_then(Option::as_ref)
                    .is_some_and(|it| it.key() == key)
        })?;
        Some(self.index(place.number))
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number.wrapping_sub(self.first)).unwrap_or(usize::MAX)
    }

    fn note(&mut self, entry: &T, number: u64) {
        debug_assert!(self.find(entry.key()).is_none(), "a key stands in the queue once");
        let hash = self.hasher.hash_one(entry.key());
        self.places.insert_unique(hash, Place { hash, number }, |place| place.hash);
        self.len += 1;
    }

    fn forget(&mut self, hash: u64, number: u64) {
        if let Ok(place) = self.places.find_entry(hash, |place| place.number == number) {
            place.remove();
            self.len -= 1;
        }
    }

    /// Neither the front nor the back is a gap, and gaps do not outnumber entries.
    fn trim(&mut self) {
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        while let Some(None) = self.entries.back() {
            self.entries.pop_back();
        }
        if self.entries.len() > FEW && self.entries.len() > 2 * self.len {
            self.close_gaps();
        }
        if self.len == 0 && self.entries.capacity() > KEPT_ROOM {
            // A list of everything went through, and will not come again soon.
            self.entries = VecDeque::new();
            self.places = HashTable::new();
        }
    }

    fn close_gaps(&mut self) {
        self.entries.retain(Option::is_some);
        self.entries.shrink_to(2 * self.len);
        self.places.clear();
        self.places.shrink_to(2 * self.len, |place| place.hash);
        for (number, entry) in (self.first..).zip(self.entries.iter().flatten()) {
            let hash = self.hasher.hash_one(entry.key());
            self.places.insert_unique(hash, Place { hash, number }, |place| place.hash);
        }
    }
}

impl<T> fmt::Debug for KeyedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedQueue").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Named(String, u32);

    impl Keyed for Named {
        fn key(&self) -> KeyRef<'_> {
            KeyRef::split(&self.0)
        }
    }

    #[derive(Debug, Clone)]
    enum Call {
        Back(u8),
        Front(u8),
        Pop,
        Remove(u8),
        Change(u8),
    }

    fn call() -> impl Strategy<Value = Call> {
        let key = || 0..200_u8;
        prop_oneof![
            4 => key().prop_map(Call::Back),
            1 => key().prop_map(Call::Front),
            1 => Just(Call::Pop),
            3 => key().prop_map(Call::Remove),
            2 => key().prop_map(Call::Change),
        ]
    }

    #[test]
    fn a_queue_that_was_long_gives_its_memory_back() {
        let mut queue = KeyedQueue::new();
        queue.reserve(5_000);
        for number in 0..5_000 {
            queue.push_back(Named(format!("space/{number}"), number));
        }
        assert!(queue.entries.capacity() >= 5_000);
        while queue.pop_front().is_some() {}
        assert!(queue.entries.capacity() <= KEPT_ROOM && queue.places.capacity() <= KEPT_ROOM);
        queue.push_back(Named("space/0".to_owned(), 0));
        assert!(queue.contains(KeyRef::split("space/0")));
    }

    proptest! {
        #[test]
        fn it_does_what_a_vector_searched_from_the_front_does(calls in prop::collection::vec(call(), 1..600)) {
            let mut queue = KeyedQueue::new();
            let mut model: Vec<Named> = Vec::new();
            let name = |key: u8| format!("space-{}/{}", key % 3, key);
            for (version, call) in (0..).zip(calls) {
                match call {
                    Call::Back(key) | Call::Front(key) if model.iter().any(|it| it.0 == name(key)) => {
                        prop_assert!(queue.contains(KeyRef::split(&name(key))));
                    }
                    Call::Back(key) => {
                        queue.push_back(Named(name(key), version));
                        model.push(Named(name(key), version));
                    }
                    Call::Front(key) => {
                        queue.push_front(Named(name(key), version));
                        model.insert(0, Named(name(key), version));
                    }
                    Call::Pop => {
                        let expected = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(queue.pop_front(), expected);
                    }
                    Call::Remove(key) => {
                        let place = model.iter().position(|it| it.0 == name(key));
                        prop_assert_eq!(queue.remove(KeyRef::split(&name(key))), place.map(|at| model.remove(at)));
                    }
                    Call::Change(key) => {
                        let changed = queue.get_mut(KeyRef::split(&name(key))).map(|it| it.1 = version);
                        let expected = model.iter_mut().find(|it| it.0 == name(key)).map(|it| it.1 = version);
                        prop_assert_eq!(changed, expected);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.front(), model.first());
                prop_assert!(queue.entries.len() <= FEW.max(2 * queue.len()) + 1, "gaps pile up");
            }
            let entries: Vec<Named> = queue.iter().cloned().collect();
            prop_assert_eq!(entries, model);
        }
    }
}
