//! The slots: objects and their keys, a page at a time.

use std::{array, sync::Arc};

use super::{pages::Pages, stored::Stored};
use crate::key_ref::KeyRef;

/// Slots a page holds. Copying a page counts a reference in each of its objects, most of them out of the cache and some in
/// use on another processor: that is what a write pays after a snapshot, and why pages are small.
const WIDTH: usize = 16;

/// Objects and their keys, by slot number. Slots are dense: the last one takes the number of one that is removed.
///
/// The keys of a page are kept as text, in one piece. Objects carry their keys themselves, but far apart: finding out there
/// whether a slot is the one looked for is three cache misses. Here it is one, for as many bytes as the key has and
/// four more.
pub(crate) struct Slots<K> {
    pages: Pages<Page<K>>,
    len: usize,
}

struct Page<K> {
    objects: [Option<Stored<K>>; WIDTH],
    /// Where each key ends in the text. The next one begins there.
    ends: [u32; WIDTH],
    keys: String,
}

impl<K> Slots<K> {
    pub(crate) fn new() -> Self {
        Self { pages: Pages::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Stored<K>> {
        let slot = slot as usize;
        self.pages.get(slot / WIDTH)?.objects[slot % WIDTH].as_ref()
    }

    /// The key of a slot.
    pub(crate) fn key(&self, slot: u32) -> Option<&str> {
        let slot = slot as usize;
        if slot >= self.len {
            return None;
        }
        Some(self.pages.get(slot / WIDTH)?.key(slot % WIDTH))
    }

    pub(crate) fn is(&self, slot: u32, key: KeyRef<'_>) -> bool {
        self.key(slot).is_some_and(|text| key.is(text))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored<K>> {
        self.pages().flatten().flatten()
    }

    /// The objects, a page at a time.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &[Option<Stored<K>>; WIDTH]> {
        self.pages.iter().map(|page| &page.objects)
    }

    /// Every key, in the order of the slots.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let counts = (0..self.len).step_by(WIDTH).map(|first| WIDTH.min(self.len - first));
        self.pages.iter().zip(counts).flat_map(|(page, count)| (0..count).map(|at| page.key(at)))
    }

    /// Puts an object behind the others.
    pub(crate) fn push(&mut self, key: KeyRef<'_>, object: Stored<K>) {
        let at = self.len % WIDTH;
        if at == 0 {
            self.pages.push(Arc::new(Page::new()));
        }
        if let Some(page) = self.pages.get_mut(self.len / WIDTH) {
            page.push(at, key, object);
            self.len += 1;
        }
    }

    /// Puts another object of the same key into a slot.
    pub(crate) fn replace(&mut self, slot: u32, object: Stored<K>) -> Option<Stored<K>> {
        let slot = slot as usize;
        self.pages.get_mut(slot / WIDTH)?.objects[slot % WIDTH].replace(object)
    }

    /// Takes an object out; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, slot: u32) -> Option<Stored<K>> {
        let (slot, last) = (slot as usize, self.len.checked_sub(1)?);
        if slot > last {
            return None;
        }
        let (key, object) = self.pop(last)?;
        if slot == last {
            return Some(object);
        }
        let in_page = WIDTH.min(last - slot / WIDTH * WIDTH);
        let page = self.pages.get_mut(slot / WIDTH)?;
        page.set_key(slot % WIDTH, in_page, &key);
        page.objects[slot % WIDTH].replace(object)
    }

    fn pop(&mut self, last: usize) -> Option<(String, Stored<K>)> {
        let taken = self.pages.get_mut(last / WIDTH)?.pop(last % WIDTH);
        self.len = last;
        if last.is_multiple_of(WIDTH) {
            self.pages.pop();
        }
        taken
    }
}

impl<K> Page<K> {
    fn new() -> Self {
        Self { objects: [const { None }; WIDTH], ends: [0; WIDTH], keys: String::new() }
    }

    fn key(&self, at: usize) -> &str {
        &self.keys[self.start(at)..self.ends[at] as usize]
    }

    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    fn end(&self) -> u32 {
        // A page has a few keys of at most a mebibyte.
        u32::try_from(self.keys.len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, at: usize, key: KeyRef<'_>, object: Stored<K>) {
        if !key.namespace.is_empty() {
            self.keys.push_str(key.namespace);
            self.keys.push('/');
        }
        self.keys.push_str(key.name);
        self.ends[at] = self.end();
        self.objects[at] = Some(object);
        if at == WIDTH - 1 {
            self.keys.shrink_to_fit();
        }
    }

    fn pop(&mut self, at: usize) -> Option<(String, Stored<K>)> {
        let key = self.keys.split_off(self.start(at));
        Some((key, self.objects[at].take()?))
    }

    /// Has the slot, one of the first `in_page`, be of another key.
    fn set_key(&mut self, at: usize, in_page: usize, key: &str) {
        self.keys.replace_range(self.start(at)..self.ends[at] as usize, key);
        if in_page == WIDTH {
            self.keys.shrink_to_fit();
        }
        // The ends behind it move by as much as the text grew or shrank.
        let by = self.end().wrapping_sub(self.ends[in_page - 1]);
        for end in &mut self.ends[at..in_page] {
            *end = end.wrapping_add(by);
        }
    }
}

impl<K> Clone for Page<K> {
    fn clone(&self) -> Self {
        self.objects.iter().flatten().for_each(Stored::announce);
        Self {
            objects: array::from_fn(|at| self.objects[at].clone()),
            ends: self.ends,
            keys: self.keys.clone(),
        }
    }
}

impl<K> Clone for Slots<K> {
    fn clone(&self) -> Self {
        Self { pages: self.pages.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Reference = Vec<(String, u32)>;

    fn contents(slots: &Slots<u32>) -> Reference {
        let objects = slots.iter().map(|stored| *stored.load());
        slots.keys().map(str::to_owned).zip(objects).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_vector_of_keys_and_objects_and_its_copies_do_not_change(
            filled in 0..200_u32,
            steps in prop::collection::vec(prop_oneof![
                2 => ("([a-z]{1,5}/)?[a-z.]{1,9}", any::<u32>()).prop_map(Ok),
                2 => any::<usize>().prop_map(|slot| Err((slot, None))),
                1 => (any::<usize>(), any::<u32>()).prop_map(|(slot, object)| Err((slot, Some(object)))),
            ], 0..200),
        ) {
            let mut ours = Slots::new();
            let mut reference: Reference = (0..filled).map(|number| (format!("ns/{number}"), number)).collect();
            for (key, object) in &reference {
                ours.push(KeyRef::split(key), Stored::new(Arc::new(*object)));
            }
            let mut copies = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Ok((key, object)) => {
                        ours.push(KeyRef::split(&key), Stored::new(Arc::new(object)));
                        reference.push((key, object));
                    }
                    Err((slot, another)) => if !reference.is_empty() {
                        let slot = slot % reference.len();
                        let at = u32::try_from(slot).unwrap();
                        let (old, expected) = match another {
                            None => (ours.swap_remove(at), reference.swap_remove(slot).1),
                            Some(another) => (
                                ours.replace(at, Stored::new(Arc::new(another))),
                                std::mem::replace(&mut reference[slot].1, another),
                            ),
                        };
                        prop_assert_eq!(*old.unwrap().load(), expected);
                    },
                }
                prop_assert_eq!(ours.len(), reference.len());
                if number % 10 == 0 {
                    copies.push((ours.clone(), reference.clone()));
                }
            }
            copies.push((ours, reference));
            for (copy, expected) in copies {
                prop_assert_eq!(contents(&copy), expected);
            }
        }
    }

    #[test]
    fn a_slot_is_the_key_in_both_its_parts() {
        let mut slots = Slots::new();
        slots.push(KeyRef { namespace: "a", name: "b" }, Stored::new(Arc::new(0)));
        slots.push(KeyRef { namespace: "", name: "b" }, Stored::new(Arc::new(1)));
        for (slot, namespace, name, expected) in [
            (0, "a", "b", true),
            (0, "", "a/b", false),
            (0, "", "b", false),
            (1, "", "b", true),
            (2, "", "b", false),
        ] {
            assert_eq!(
                slots.is(slot, KeyRef { namespace, name }),
                expected,
                "slot {slot}, {namespace:?} {name:?}"
            );
        }
    }
}
