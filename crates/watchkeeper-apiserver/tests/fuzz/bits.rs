//! Choices driven by the bytes of an input.

use serde_json::{Map, Value, json};

/// A source of choices. Without bytes left, every choice is the first one, so that generation ends.
pub(crate) struct Bits<'a> {
    rest: &'a [u8],
}

/// Strings with a meaning to some parser.
const WORDS: &[&str] = &[
    "",
    "a",
    "b",
    "name",
    "metadata",
    "spec",
    "data",
    "labels",
    "annotations",
    "containers",
    "ports",
    "image",
    "env",
    "value",
    "kind",
    "apiVersion",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "generateName",
    "x-",
    "$patch",
    "replace",
    "delete",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "a/b",
    "ä",
    "\u{0}",
    "\u{202e}",
    "1",
    "-1",
    "1e9",
    "9999999999999999999",
    "<<",
    "*a",
    "&a",
    "~0",
    "~1",
    "-",
    "2020-01-01T00:00:00Z",
    "100m",
    "1Gi",
];

impl<'a> Bits<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// Returns a number below `end`, which is at most 65,536.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let number = if end > 256 {
            usize::from(self.byte()) << 8 | usize::from(self.byte())
        } else {
            self.byte().into()
        };
        number % end.max(1)
    }

    pub(crate) fn pick<'t, T: ?Sized>(&mut self, among: &'t [&'t T]) -> &'t T {
        among[self.below(among.len())]
    }

    pub(crate) fn word(&mut self) -> String {
        let word = self.pick(WORDS);
        match self.below(16) {
            // Some words are long.
            15 => word.repeat(1 + self.below(4_000)),
            14 => format!("{word}{}", self.below(65_536)),
            _ => word.to_owned(),
        }
    }

    /// Returns the number of items of a list: usually small.
    pub(crate) fn count(&mut self) -> usize {
        if self.below(12) == 11 { self.below(3_000) } else { self.below(4) }
    }

    pub(crate) fn value(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 6 } else { 9 };
        match self.below(kinds) {
            0 => json!({}),
            1 => Value::Null,
            2 => json!(self.below(2) == 1),
            3 => json!(self.below(65_536)),
            4 => json!(-1.5),
            5 => self.word().into(),
            6 | 7 => {
                let count = self.count();
                let first = self.value(depth - 1);
                // Long lists repeat one item, alternating with numbers.
                (0..count).map(|index| if index % 2 == 1 { json!(index) } else { first.clone() }).collect()
            }
            _ => {
                let count = self.count().min(200);
                let mut members = Map::new();
                for index in 0..count {
                    let name = if index < 6 { self.word() } else { format!("k{index}") };
                    members.insert(name, self.value(depth - 1));
                }
                Value::Object(members)
            }
        }
    }

    /// Mutates a text in some places: bytes are replaced, parts are removed or repeated.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.below(6) {
            let index = self.below(65_536) % bytes.len().max(1);
            let end = (index + self.below(64)).min(bytes.len());
            match self.below(5) {
                0 => {
                    let byte = self.byte();
                    if let Some(old) = bytes.get_mut(index) {
                        *old = byte;
                    }
                }
                1 => drop(bytes.drain(index.min(end)..end)),
                2 => {
                    let part = bytes.get(index..end).unwrap_or_default().repeat(1 + self.below(600));
                    bytes.splice(end..end, part);
                }
                3 => bytes.truncate(index),
                _ => {
                    let word = self.word();
                    bytes.splice(index..index, word.into_bytes());
                }
            }
        }
    }
}
