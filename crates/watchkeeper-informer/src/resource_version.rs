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

    /// As [`new`](Self::new), sharing the text.
    pub(crate) fn shared(text: &Arc<str>) -> Option<Self> {
        (!text.is_empty()).then(|| Self(Arc::clone(text)))
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
        is_number(&self.0)
    }
}

/// How two versions compare, as texts: as decimal numbers of any length. What is not such a number, or has a
/// leading zero, has no order.
pub(crate) fn order(a: &str, b: &str) -> Option<Ordering> {
    // Without leading zeros the longer number is the larger one.
    (is_number(a) && is_number(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

/// Whether `a` is known to be older than `b`.
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
