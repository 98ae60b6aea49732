//! Keys of objects in caches and queues.

use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    str::{self, FromStr},
    sync::Arc,
};

use kube_core::Resource;
use watchkeeper_client::decode::Identity;

/// The key of an object in caches and queues: `namespace/name`, or `name` for cluster-scoped objects.
///
/// Two objects of one kind have the same key exactly when they have the same namespace and name. Neither part is empty
/// or contains a slash, so a key parses back into its parts. Cloning shares the text.
///
/// ```
/// use watchkeeper_informer::ObjectKey;
///
/// let key: ObjectKey = "shop/web-0".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-0"));
/// assert_eq!(key, ObjectKey::new(Some("shop"), "web-0")?);
/// # Ok::<(), watchkeeper_informer::KeyError>(())
/// ```
#[doc(alias = "ObjectName")]
#[doc(alias = "NamespacedName")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "ObjectRef")]
pub struct ObjectKey(Arc<str>);

/// The reason why a text or an object has no valid key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The object has no name.
    #[error("an object without metadata.name has no key; set the name, or keep it when transforming")]
    NoName,
    /// The key exceeds [`ObjectKey::MAX_BYTES`]. No API server stores an object with such a name.
    #[error("a key of {bytes} bytes exceeds the maximum of {}", ObjectKey::MAX_BYTES)]
    TooLong {
        /// The length of the key.
        bytes: usize,
    },
    /// The text has an empty part, or more than two parts.
    #[error("{text:?} is not a key; want \"namespace/name\", or \"name\" for cluster-scoped objects")]
    Malformed {
        /// The text that was parsed.
        text: String,
    },
}

impl ObjectKey {
    /// The maximum length of a key in bytes, far above the name length that API servers accept.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Creates a key from a text that was checked before.
    pub(crate) fn of_checked(text: &str) -> Self {
        debug_assert_eq!(text.parse().as_ref(), Ok(&Self(text.into())), "was checked when it was stored");
        Self(text.into())
    }

    /// Creates a key from its parts. An empty namespace counts as none, as in the Kubernetes API.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the name is empty, a part contains a slash, or the key is too long.
    #[doc(alias = "ExplicitKey")]
    pub fn new(namespace: Option<&str>, name: &str) -> Result<Self, KeyError> {
        KeyRef { namespace: namespace.unwrap_or_default(), name }.to_key()
    }

    /// Returns the key of an object.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no name, or its name or namespace contains a slash.
    #[doc(alias = "MetaNamespaceKeyFunc")]
    #[doc(alias = "KeyFunc")]
    #[doc(alias = "DeletionHandlingMetaNamespaceKeyFunc")]
    #[doc(alias = "ObjectToName")]
    pub fn of<K: Resource>(object: &K) -> Result<Self, KeyError> {
        KeyRef::of(object).to_key()
    }

    /// Returns the namespace, or `None` for cluster-scoped objects.
    #[doc(alias = "SplitMetaNamespaceKey")]
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Returns the name of the object.
    #[doc(alias = "SplitMetaNamespaceKey")]
    pub fn name(&self) -> &str {
        KeyRef::split(&self.0).name
    }

    /// Returns the key as text: `namespace/name` or `name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        match text.split_once('/') {
            None => KeyRef { namespace: "", name: text }.to_key(),
            Some(("", _)) => Err(KeyError::Malformed { text: text.to_owned() }),
            Some((namespace, name)) => KeyRef { namespace, name }.to_key(),
        }
    }
}

impl TryFrom<&Identity> for ObjectKey {
    type Error = KeyError;

    fn try_from(identity: &Identity) -> Result<Self, KeyError> {
        Self::new(identity.namespace(), identity.name())
    }
}

impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ObjectKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<ObjectKey> for Arc<str> {
    fn from(key: ObjectKey) -> Self {
        key.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The two parts of a key, borrowed from an object or a text. The namespace of a cluster-scoped object is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> KeyRef<'a> {
    /// Returns the parts of an object's key without validating them.
    pub(crate) fn of<K: Resource>(object: &'a K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().unwrap_or_default(),
            name: meta.name.as_deref().unwrap_or_default(),
        }
    }

    /// Splits a text at its first slash. The parts of a text that is not a key match no stored object.
    pub(crate) fn split(text: &'a str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self { namespace, name }
    }

    pub(crate) fn check(self) -> Result<Self, KeyError> {
        let bytes = self.namespace.len() + 1 + self.name.len();
        if bytes > ObjectKey::MAX_BYTES {
            return Err(KeyError::TooLong { bytes });
        }
        if self.name.is_empty() && !self.namespace.contains('/') {
            return Err(KeyError::NoName);
        }
        if self.name.is_empty() || self.name.contains('/') || self.namespace.contains('/') {
            return Err(KeyError::Malformed { text: format!("{}/{}", self.namespace, self.name) });
        }
        Ok(self)
    }

    pub(crate) fn to_key(self) -> Result<ObjectKey, KeyError> {
        Ok(ObjectKey(self.check()?.to_string().into()))
    }
}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(self.name)
    }
}

/// The longest key that [`KeyText`] stores inline.
const INLINE_BYTES: usize = 38;

/// The text of a key, stored inline if it is short.
///
/// Tables compare the keys that they contain with this text instead of the object's metadata, which costs three cache
/// misses: one for a short key, two for a long one.
#[derive(Clone)]
pub(crate) enum KeyText {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Boxed(Box<str>),
}

impl KeyText {
    pub(crate) fn of(key: KeyRef<'_>) -> Self {
        let slash = usize::from(!key.namespace.is_empty());
        let total = key.namespace.len() + slash + key.name.len();
        let (Ok(len), true) = (u8::try_from(total), total <= INLINE_BYTES) else {
            return Self::Boxed(key.to_string().into());
        };
        let mut bytes = [b'/'; INLINE_BYTES];
        bytes[..key.namespace.len()].copy_from_slice(key.namespace.as_bytes());
        bytes[key.namespace.len() + slash..total].copy_from_slice(key.name.as_bytes());
        Self::Inline { len, bytes }
    }

    /// Returns the text to look up for these parts, or `None` if no object can have them.
    pub(crate) fn for_lookup(namespace: Option<&str>, name: &str) -> Option<Self> {
        let key = KeyRef { namespace: namespace.unwrap_or_default(), name };
        // A name with a slash is invalid, and would be read as a namespace and a name.
        let is_ambiguous = key.namespace.is_empty() && name.contains('/');
        (!is_ambiguous).then(|| Self::of(key))
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            // The bytes were copied from two texts and a slash.
            Self::Inline { .. } => str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Self::Boxed(text) => text,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Boxed(text) => text.as_bytes(),
        }
    }
}

/// Creates an empty text, which is no key.
impl Default for KeyText {
    fn default() -> Self {
        Self::Inline { len: 0, bytes: [0; INLINE_BYTES] }
    }
}

impl PartialEq for KeyText {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for KeyText {}

impl Hash for KeyText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The length prefix of a slice is left out: a table contains nothing but keys.
        state.write(self.as_bytes());
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_text_is_the_text_of_the_key_whether_inline_or_boxed() {
        for length in [1, 20, INLINE_BYTES - 3, INLINE_BYTES - 2, INLINE_BYTES - 1, INLINE_BYTES, 39, 300] {
            for namespace in ["", "a", "é"] {
                let name = "n".repeat(length);
                let key = KeyRef { namespace, name: &name };
                let text = KeyText::of(key);
                assert_eq!((text.as_str(), text.as_bytes()), (&*key.to_string(), key.to_string().as_bytes()));
                assert_eq!(KeyText::for_lookup(Some(namespace), &name), Some(text));
            }
        }
    }

    #[test]
    fn a_name_with_a_slash_is_not_looked_up_as_a_namespace_and_a_name() {
        assert!(KeyText::for_lookup(None, "a/b").is_none() && KeyText::for_lookup(Some(""), "a/b").is_none());
        assert_eq!(KeyText::for_lookup(Some("a"), "b").unwrap().as_str(), "a/b");
        assert_eq!(KeyText::for_lookup(None, "b").unwrap().as_str(), "b");
    }

    #[test]
    fn key_text_has_forty_bytes() {
        assert_eq!(size_of::<KeyText>(), 40);
    }
}
