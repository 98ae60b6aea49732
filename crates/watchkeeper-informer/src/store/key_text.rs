//! The text of a key, as a slot holds it.

use std::str;

use crate::key_ref::KeyRef;

/// The longest text that needs no memory of its own.
const SHORT: usize = 38;

/// The text of a key. Objects carry their keys themselves, but far apart: finding out there whether a slot is the one looked
/// for is three cache misses. Here it is one for most keys, and two for those that are long.
#[derive(Clone)]
pub(crate) enum KeyText {
    Short { len: u8, text: [u8; SHORT] },
    Long(Box<str>),
}

impl KeyText {
    pub(crate) fn of(key: KeyRef<'_>) -> Self {
        let slash: &[u8] = if key.namespace.is_empty() { b"" } else { b"/" };
        let parts = [key.namespace.as_bytes(), slash, key.name.as_bytes()];
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let (Ok(short), true) = (u8::try_from(len), len <= SHORT) else {
            return Self::Long(key.to_string().into());
        };
        let mut text = [0; SHORT];
        let bytes = parts.into_iter().flatten();
        text.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        Self::Short { len: short, text }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            // It was put together of whole texts.
            Self::Short { .. } => str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Self::Long(text) => text,
        }
    }

    pub(crate) fn is(&self, key: KeyRef<'_>) -> bool {
        key.is(self.as_bytes())
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, text } => text.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(text) => text.as_bytes(),
        }
    }
}

/// No text, which is no key.
impl Default for KeyText {
    fn default() -> Self {
        Self::Short { len: 0, text: [0; SHORT] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_key_and_no_other_whether_short_or_long() {
        for length in [1, 20, SHORT - 3, SHORT - 2, SHORT - 1, SHORT, SHORT + 1, 300] {
            for namespace in ["", "a", "é"] {
                let name = "n".repeat(length);
                let key = KeyRef { namespace, name: &name };
                let text = KeyText::of(key);
                assert_eq!(text.as_str(), key.to_string());
                assert!(text.is(key), "{key}");
                assert!(!text.is(KeyRef { namespace: "b", ..key }), "{key}");
                assert!(!text.is(KeyRef { name: &name[1..], ..key }), "{key}");
                assert!(!text.is(KeyRef { name: &format!("{name}n"), ..key }), "{key}");
            }
        }
    }

    #[test]
    fn it_is_forty_bytes() {
        assert_eq!(size_of::<KeyText>(), 40);
    }
}
