//! Objects that could not be decoded or transformed.

use std::{fmt, sync::Arc};

/// The reason why an object is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuarantineCause {
    /// The object does not decode as the requested type.
    Decode,
    /// The transform failed or panicked.
    Transform,
}

/// An object whose current version could not be decoded or transformed.
///
/// The cache keeps the last good version of the object, if any. Other objects are not affected. The object
/// stays quarantined until a good version arrives or it is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "DeserializeGuard")]
#[doc(alias = "InvalidObject")]
pub struct Quarantined {
    /// The key of the object: `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// The resourceVersion that was rejected.
    pub resource_version: Option<Arc<str>>,
    /// The step that failed.
    pub cause: QuarantineCause,
    /// The error, without any data of the object.
    pub error: Arc<str>,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version.as_deref().unwrap_or("unknown");
        write!(f, "object {:?} at resourceVersion {version}: {}", self.key, self.error)
    }
}
