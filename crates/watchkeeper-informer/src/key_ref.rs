//! The key of an object, read where it stands.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use kube_core::Resource;

use crate::key::{KeyError, ObjectKey};

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
        let text = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        Ok(ObjectKey(text))
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

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(self.name)
    }
}

/// True when both objects say who they are and are not the same: one was deleted and the other created under
/// its name.
pub(crate) fn is_other_incarnation<K: Resource>(one: &K, other: &K) -> bool {
    matches!((&one.meta().uid, &other.meta().uid), (Some(one), Some(other)) if one != other)
}

/// True when both objects are known to be the same version of the same incarnation.
pub(crate) fn is_same_version<K: Resource>(one: &K, other: &K) -> bool {
    let [one_version, other_version] = [one, other].map(|object| object.meta().resource_version.as_deref());
    !is_other_incarnation(one, other)
        && one_version.is_some_and(|version| !version.is_empty())
        && one_version == other_version
}
