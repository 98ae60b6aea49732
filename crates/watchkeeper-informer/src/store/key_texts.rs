//! The keys of the slots, close together.

use std::sync::Arc;

use super::paged::{Paged, WIDTH};
use crate::{ObjectKey, key::KeyRef};

/// The key of each slot, as text, the keys of a page in one piece.
///
/// Objects carry their keys themselves, but far apart: reading one there is three cache misses, to find out whether a slot is
/// the one looked for. Here it is one, for as many bytes as the key has and four more.
#[derive(Clone)]
pub(crate) struct KeyTexts {
    pages: Paged<Arc<KeyPage>>,
    len: usize,
}

#[derive(Clone)]
struct KeyPage {
    /// Where each key ends. The next one begins there.
    ends: [u32; WIDTH],
    text: String,
}

impl Default for KeyPage {
    fn default() -> Self {
        Self { ends: [0; WIDTH], text: String::new() }
    }
}

impl KeyPage {
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    fn key(&self, at: usize) -> &str {
        &self.text[self.start(at)..self.ends[at] as usize]
    }

    fn end(&self) -> u32 {
        // A page has at most 64 keys of at most a mebibyte.
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }
}

impl KeyTexts {
    pub(crate) fn new() -> Self {
        Self { pages: Paged::new(), len: 0 }
    }

    /// The key of a slot.
    pub(crate) fn get(&self, slot: usize) -> Option<&str> {
        if slot >= self.len {
            return None;
        }
        Some(self.pages.get(slot / WIDTH)?.key(slot % WIDTH))
    }

    pub(crate) fn is(&self, slot: usize, key: KeyRef<'_>) -> bool {
        self.get(slot).is_some_and(|text| KeyRef::split(text) == key)
    }

    pub(crate) fn push(&mut self, key: KeyRef<'_>) {
        let at = self.len % WIDTH;
        if at == 0 {
            self.pages.push(Arc::default());
        }
        let Some(page) = self.pages.get_mut(self.len / WIDTH) else { return };
        let page = Arc::make_mut(page);
        if !key.namespace.is_empty() {
            page.text.push_str(key.namespace);
            page.text.push('/');
        }
        page.text.push_str(key.name);
        page.ends[at] = page.end();
        if at == WIDTH - 1 {
            page.text.shrink_to_fit();
        }
        self.len += 1;
    }

    /// Takes the key of a slot out; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, slot: usize) {
        let Some(last) = self.len.checked_sub(1) else { return };
        let moved = self.get(last).unwrap_or_default().to_owned();
        self.pop(last);
        if slot < last {
            self.set(slot, &moved);
        }
    }

    fn pop(&mut self, last: usize) {
        if last.is_multiple_of(WIDTH) {
            self.pages.pop();
        } else if let Some(page) = self.pages.get_mut(last / WIDTH) {
            let page = Arc::make_mut(page);
            page.text.truncate(page.start(last % WIDTH));
        }
        self.len = last;
    }

    fn set(&mut self, slot: usize, key: &str) {
        let in_page = WIDTH.min(self.len - slot / WIDTH * WIDTH);
        let Some(page) = self.pages.get_mut(slot / WIDTH) else { return };
        let page = Arc::make_mut(page);
        let at = slot % WIDTH;
        let (start, end) = (page.start(at), page.ends[at]);
        page.text.replace_range(start..end as usize, key);
        if in_page == WIDTH {
            page.text.shrink_to_fit();
        }
        // All of them move by as much as this one grew or shrank, which no end is shorter than.
        let behind = page.end().wrapping_sub(page.ends[in_page - 1]);
        for end in &mut page.ends[at..in_page] {
            *end = end.wrapping_add(behind);
        }
    }
}

/// The keys of these texts, sorted.
pub(crate) fn sorted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = texts.map(ObjectKey::of_checked).collect();
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(keys: &KeyTexts) -> Vec<&str> {
        (0..keys.len).filter_map(|slot| keys.get(slot)).collect()
    }

    proptest! {
           #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

           #[test]
           fn it_is_a_vector_of_keys_and_its_copies_do_not_change(
               filled in 0..200_usize,
               steps in prop::collection::vec(prop_oneof![
                   "([a-z]{1,5}/)?[a-z.]{1,9}".prop_map(Ok),
                   any::<usize>().prop_map(Err),
               ], 0..200),
           ) {
               let mut ours = KeyTexts::new();
               let mut reference: Vec<String> = (0..filled).map(|number| format!("ns/{number}")).collect();
               for key in &reference {
    ours.push(KeyRef::split(key));
    }
               let mut copies = Vec::new();
               for (number, step) in steps.into_iter().enumerate() {
                   match step {
                       Ok(key) => {
                           ours.push(KeyRef::split(&key));
                           reference.push(key);
                       }
                       Err(slot) => if !reference.is_empty() {
                           let slot = slot % reference.len();
                           ours.swap_remove(slot);
                           reference.swap_remove(slot);
                       },
                   }
                   if number % 10 == 0 {
                       copies.push((ours.clone(), reference.clone()));
                   }
               }
               copies.push((ours, reference));
               for (copy, expected) in copies {
                   prop_assert_eq!(texts(&copy), expected);
               }
           }
       }

    #[test]
    fn a_slot_is_the_key_in_both_its_parts() {
        let mut keys = KeyTexts::new();
        keys.push(KeyRef { namespace: "a", name: "b" });
        keys.push(KeyRef { namespace: "", name: "b" });
        for (slot, namespace, name, expected) in [
            (0, "a", "b", true),
            (0, "", "a/b", false),
            (0, "", "b", false),
            (1, "", "b", true),
            (2, "", "b", false),
        ] {
            assert_eq!(
                keys.is(slot, KeyRef { namespace, name }),
                expected,
                "slot {slot}, {namespace:?} {name:?}"
            );
        }
    }
}
