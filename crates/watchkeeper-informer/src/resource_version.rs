//! The version of an object or of a whole list.

use std::{cmp::Ordering, fmt, sync::Arc};

use kube_core::Resource;

/// A `resourceVersion`: opaque, equal or not, and with an order only where the server's form of it has one.
///
/// Kubernetes API servers count in decimal; of two such versions, of any length, one is the newer. Versions with leading
/// zeros (`"0"` among them, which in a request means "any") and versions that are not decimal numbers compare equal
/// to themselves and to nothing else. Cloning shares the text.
///
/// ```
/// use watchkeeper_informer::ResourceVersion;
///
/// let version = |text| ResourceVersion::new(text).unwrap();
/// assert!(version("999") < version("1000"));
/// assert_eq!(version("7").partial_cmp(&version("a7")), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Arc<str>);

impl ResourceVersion {
    /// The version of this text. The empty text is no version.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The version of an object, if it has one.
    pub fn of<K: Resource>(object: &K) -> Option<Self> {
        Self::new(object.meta().resource_version.as_deref()?)
    }

    /// The text, to be sent back to the server as it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this version has a place among others, apart from being itself.
    pub fn is_ordered(&self) -> bool {
        !self.0.starts_with('0') && self.0.bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        // Without leading zeros the longer number is the larger one.
        let by_value = || self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0));
        (self.is_ordered() && other.is_ordered()).then(by_value)
    }
}

impl AsRef<str> for ResourceVersion {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}
