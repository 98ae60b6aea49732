//! The slots: objects and their keys, by number.

use std::sync::Arc;

use super::{key_text::KeyText, paged::Paged, pages::Pages, stored::Stored};

/// Objects a page holds. Copying a page counts a reference in each of its objects, most of them out of the cache and some in
/// use on another processor: that is what a write pays after a snapshot, and why pages are small.
const WIDTH: usize = 8;

struct Page<K>([Option<Stored<K>>; WIDTH]);

/// Objects and their keys, by slot number. Slots are dense: the last one takes the number of one that is removed.
///
/// Keys have pages of their own: most writes change an object and no key, and lists look at objects and at no key.
pub(crate) struct Slots<K> {
    objects: Pages<Page<K>>,
    keys: Paged<KeyText>,
}

impl<K> Slots<K> {
    pub(crate) fn new() -> Self {
        Self { objects: Pages::new(), keys: Paged::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Stored<K>> {
        let slot = slot as usize;
        self.objects.get(slot / WIDTH)?.0[slot % WIDTH].as_ref()
    }

    /// The key of a slot.
    pub(crate) fn key(&self, slot: u32) -> Option<&str> {
        self.keys.get(slot as usize).map(KeyText::as_str)
    }

    pub(crate) fn is(&self, slot: u32, key: &[u8]) -> bool {
        self.keys.get(slot as usize).is_some_and(|text| text.as_bytes() == key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored<K>> {
        self.pages().flatten().flatten()
    }

    /// The objects, a page at a time.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &[Option<Stored<K>>; WIDTH]> {
        self.objects.iter().map(|page| &page.0)
    }

    /// Every key, in the order of the slots.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(KeyText::as_str)
    }

    /// Puts an object behind the others.
    pub(crate) fn push(&mut self, key: KeyText, object: Stored<K>) {
        let slot = self.len();
        if slot.is_multiple_of(WIDTH) {
            self.objects.push(Arc::new(Page([const { None }; WIDTH])));
        }
        if let Some(place) = self.place(slot) {
            *place = Some(object);
            self.keys.push(key);
        }
    }

    /// Puts another object of the same key into a slot.
    pub(crate) fn replace(&mut self, slot: u32, object: Stored<K>) -> Option<Stored<K>> {
        self.place(slot as usize)?.replace(object)
    }

    /// Takes an object out; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, slot: u32) -> Option<Stored<K>> {
        let slot = slot as usize;
        self.keys.swap_remove(slot)?;
        let last = self.len();
        let object = self.place(last)?.take()?;
        if last.is_multiple_of(WIDTH) {
            self.objects.pop();
        }
        if slot == last { Some(object) } else { self.place(slot)?.replace(object) }
    }

    /// The place of a slot, to write to.
    fn place(&mut self, slot: usize) -> Option<&mut Option<Stored<K>>> {
        self.objects.get_mut(slot / WIDTH).map(|page| &mut page.0[slot % WIDTH])
    }
}

impl<K> Clone for Page<K> {
    fn clone(&self) -> Self {
        self.0.iter().flatten().for_each(Stored::announce);
        Self(self.0.each_ref().map(Clone::clone))
    }
}

impl<K> Clone for Slots<K> {
    fn clone(&self) -> Self {
        Self { objects: self.objects.clone(), keys: self.keys.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key_ref::KeyRef;

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
                ours.push(KeyText::of(KeyRef::split(key)), Stored::new(Arc::new(*object)));
            }
            let mut copies = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Ok((key, object)) => {
                        ours.push(KeyText::of(KeyRef::split(&key)), Stored::new(Arc::new(object)));
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
}
