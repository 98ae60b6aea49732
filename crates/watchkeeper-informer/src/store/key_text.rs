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
        let slash = usize::from(!key.namespace.is_empty());
        let len = key.namespace.len() + slash + key.name.len();
        let (Ok(short), true) = (u8::try_from(len), len <= SHORT) else {
            return Self::Long(key.to_string().into());
        };
        let mut text = [b'/'; SHORT];
        text[..key.namespace.len()].copy_from_slice(key.namespace.as_bytes());
        text[key.namespace.len() + slash..len].copy_from_slice(key.name.as_bytes());
        Self::Short { len: short, text }
    }

    /// What to look for when somebody names these parts; nothing when no object can have them.
    pub(crate) fn looked_for(namespace: Option<&str>, name: &str) -> Option<Self> {
        let key = KeyRef { namespace: namespace.unwrap_or_default(), name };
        // A name with a slash is none, and reads like a key with a namespace.
        let is_two = key.namespace.is_empty() && name.contains('/');
        (!is_two).then(|| Self::of(key))
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            // It was put together of whole texts.
            Self::Short { .. } => str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Self::Long(text) => text,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
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
    fn it_is_the_text_of_the_key_whether_short_or_long() {
        for length in [1, 20, SHORT - 3, SHORT - 2, SHORT - 1, SHORT, SHORT + 1, 300] {
            for namespace in ["", "a", "é"] {
                let name = "n".repeat(length);
                let key = KeyRef { namespace, name: &name };
                let text = KeyText::of(key);
                assert_eq!((text.as_str(), text.as_bytes()), (&*key.to_string(), key.to_string().as_bytes()));
                let found = KeyText::looked_for(Some(namespace), &name);
                assert_eq!(found.as_ref().map(KeyText::as_str), Some(text.as_str()));
            }
        }
    }

    #[test]
    fn a_name_alone_is_not_looked_for_as_a_namespace_and_a_name() {
        assert!(KeyText::looked_for(None, "a/b").is_none() && KeyText::looked_for(Some(""), "a/b").is_none());
        assert_eq!(KeyText::looked_for(Some("a"), "b").unwrap().as_str(), "a/b");
        assert_eq!(KeyText::looked_for(None, "b").unwrap().as_str(), "b");
    }

    #[test]
    fn it_is_forty_bytes() {
        assert_eq!(size_of::<KeyText>(), 40);
    }
}
