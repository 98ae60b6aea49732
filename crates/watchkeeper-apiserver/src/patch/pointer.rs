//! The JSON pointers in operations of a JSON patch.

use serde_json::Value;

/// A JSON pointer: the location of a value in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    tokens: Vec<String>,
}

impl Pointer {
    /// Parses a pointer. Text before its first slash is ignored. Returns none if there is no slash.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('/')?;
        Some(Self { tokens: rest.split('/').map(unescape).collect() })
    }

    /// Returns the number of steps.
    pub(super) fn depth(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the object or array that contains the location, and the last step.
    pub(super) fn parent<'v>(&self, root: &'v mut Value) -> Option<(&'v mut Value, &str)> {
        let (last, parents) = self.tokens.split_last()?;
        let mut parent = root;
        for token in parents {
            parent = match parent {
                Value::Object(members) => members.get_mut(token)?,
                Value::Array(items) => {
                    let index = resolve_index(token, items.len())?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
        }
        (parent.is_object() || parent.is_array()).then_some((parent, last.as_str()))
    }
}

/// Returns the array index of a token, for an array of `len` items. Negative tokens count from the end.
pub(super) fn resolve_index(token: &str, len: usize) -> Option<usize> {
    let index: i64 = token.parse().ok()?;
    if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    } else {
        usize::try_from(index).ok().filter(|index| *index < len)
    }
}

fn unescape(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    let mut rest = token;
    while let Some((before, after)) = rest.split_once('~') {
        text.push_str(before);
        (text, rest) = match after.as_bytes().first() {
            Some(b'1') => (text + "/", &after[1..]),
            Some(b'0') => (text + "~", &after[1..]),
            _ => (text + "~", after),
        };
    }
    text + rest
}
