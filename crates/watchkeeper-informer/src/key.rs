//! What an object is called in a cache.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use kube_core::Resource;
use watchkeeper_client::decode::Identity;

use crate::key_ref::KeyRef;

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
pub struct ObjectKey(pub(crate) Arc<str>);

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
