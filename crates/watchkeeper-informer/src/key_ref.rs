//! The key of an object, read where it stands.

use std::fmt;

use kube_core::Resource;

/// Namespace and name of an object, borrowed from its metadata: what queues compare and hash, without
/// building a string for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> KeyRef<'a> {
    /// The key of an object. An absent and an empty part are the same.
    pub(crate) fn of<K: Resource>(object: &'a K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().unwrap_or_default(),
            name: meta.name.as_deref().unwrap_or_default(),
        }
    }

    /// The parts of `namespace/name` or `name`.
    pub(crate) fn parse(key: &'a str) -> Self {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        Self { namespace, name }
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
