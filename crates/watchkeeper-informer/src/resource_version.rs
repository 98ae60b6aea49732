//! resourceVersions of objects and lists.

use std::{cmp::Ordering, fmt, sync::Arc};

use kube_core::Resource;

/// A `resourceVersion`, with an order if it is a decimal number.
///
/// Kubernetes API servers use increasing decimal numbers of any length. Versions with leading zeros
/// (including `"0"`, which in a request means "any") and versions that are not decimal numbers are equal to
/// themselves and have no order. Cloning shares the text.
///
/// ```
/// use watchkeeper_informer::ResourceVersion;
///
/// let version = |text| ResourceVersion::new(text).unwrap();
/// assert!(version("999") < version("1000"));
/// assert_eq!(version("7").partial_cmp(&version("a7")), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[doc(alias = "ResourceVersionComparator")]
pub struct ResourceVersion(Arc<str>);

impl ResourceVersion {
    /// Creates a version from its text. Returns `None` for an empty text.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// Creates a version that shares its text.
    pub(crate) fn shared(text: &Arc<str>) -> Option<Self> {
        (!text.is_empty()).then(|| Self(Arc::clone(text)))
    }

    /// Returns the version of an object, if it has one.
    pub fn of<K: Resource>(object: &K) -> Option<Self> {
        Self::new(object.meta().resource_version.as_deref()?)
    }

    /// Returns the text, as sent by the server.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this version can be compared with other ones.
    pub fn is_ordered(&self) -> bool {
        is_number(&self.0)
    }
}

/// Compares two versions as decimal numbers of any length. Other texts, and numbers with a leading zero, have
/// no order.
pub(crate) fn order(a: &str, b: &str) -> Option<Ordering> {
    // Without leading zeros, a longer number is larger.
    (is_number(a) && is_number(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

/// Returns whether `a` is known to be older than `b`.
pub(crate) fn is_older(a: &str, b: &str) -> bool {
    order(a, b) == Some(Ordering::Less)
}

fn is_number(version: &str) -> bool {
    !version.is_empty() && !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other { Some(Ordering::Equal) } else { order(&self.0, &other.0) }
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
