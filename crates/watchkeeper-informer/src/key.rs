//! What an object is called in a cache.

use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

use kube_core::Resource;
use watchkeeper_client::decode::Identity;

/// The name an object has in caches and queues: `namespace/name`, or `name` alone for cluster-scoped objects.
///
/// Two objects of one kind have the same key exactly when they have the same namespace and name. Neither part is ever
/// empty or contains a slash, so a key reads back as what it was made of. Cloning shares the text.
///
/// ```
/// use watchkeeper_informer::ObjectKey;
///
/// let key: ObjectKey = "shop/web-0".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-0"));
/// assert_eq!(key, ObjectKey::new(Some("shop"), "web-0")?);
/// # Ok::<(), watchkeeper_informer::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

/// Why something cannot be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The object is not named.
    #[error("an object without metadata.name has no key; set the name, or keep it when transforming")]
    NoName,
    /// No server could store an object of such a name.
    #[error("a key of {bytes} bytes; the longest is of {}", ObjectKey::MAX_BYTES)]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A part is missing, or there are too many.
    #[error("{text:?} is not a key; want \"namespace/name\", or \"name\" for cluster-scoped objects")]
    Malformed {
        /// What was given.
        text: String,
    },
}

impl ObjectKey {
    /// The length of the longest key. Far beyond any name in use; the storage of API servers refuses such.
    pub const MAX_BYTES: usize = 1 << 20;

    /// A text that is known to be a key.
    pub(crate) fn of_checked(text: &str) -> Self {
        debug_assert_eq!(text.parse().as_ref(), Ok(&Self(text.into())), "was checked when it was stored");
        Self(text.into())
    }

    /// The key of these parts. An empty namespace is none, as the Kubernetes API has it.
    ///
    /// # Errors
    /// When the name is empty, a part contains a slash, or they are too long.
    pub fn new(namespace: Option<&str>, name: &str) -> Result<Self, KeyError> {
        KeyRef { namespace: namespace.unwrap_or_default(), name }.to_key()
    }

    /// The key of an object.
    ///
    /// # Errors
    /// When the object has no name, or its name or namespace contains a slash.
    pub fn of<K: Resource>(object: &K) -> Result<Self, KeyError> {
        KeyRef::of(object).to_key()
    }

    /// The namespace; none for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        KeyRef::split(&self.0).name
    }

    /// The whole key.
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

/// A key in two borrowed parts, as objects carry it. No namespace is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyRef<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> KeyRef<'a> {
    /// The parts of an object's key, whether or not they make one.
    pub(crate) fn of<K: Resource>(object: &'a K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().unwrap_or_default(),
            name: meta.name.as_deref().unwrap_or_default(),
        }
    }

    /// The parts of a text that may be a key. Of one that is not, the parts match no stored object.
    pub(crate) fn split(text: &'a str) -> Self {
        // Namespaces are short: looking at byte after byte is faster than setting up a search.
        let slash = text.bytes().position(|byte| byte == b'/');
        let (namespace, name) = slash.map_or(("", text), |at| (&text[..at], &text[at + 1..]));
        Self { namespace, name }
    }

    /// Whether this is the key with that text, which is one.
    pub(crate) fn is(self, text: &str) -> bool {
        let (text, name) = (text.as_bytes(), self.name.as_bytes());
        let Some(rest) = text.strip_suffix(name) else { return false };
        match rest.split_last() {
            Some((b'/', namespace)) => !namespace.is_empty() && namespace == self.namespace.as_bytes(),
            Some(_) => false,
            // A name with a slash is none, and reads like a key with a namespace.
            None => self.namespace.is_empty() && !name.contains(&b'/'),
        }
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
        let Self { namespace, name } = self.check()?;
        Ok(ObjectKey(if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }))
    }
}

// By hand: the parts as they stand, without the ends that strings mark. Keys that differ only in where they are divided
// would meet in a table, and be told apart there like all others.
impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.namespace.as_bytes());
        state.write(self.name.as_bytes());
    }
}
