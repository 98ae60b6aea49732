//! Objects that exist and cannot be had.

use std::{fmt, sync::Arc};

/// Why an object that the server sent is not in the cache in that version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Its bytes are not the type asked for.
    Decode,
    /// The transform refused it, or panicked over it.
    Transform,
}

/// An object whose present version could not be taken in.
///
/// The cache keeps the last good version, if there was one; the siblings of the object are not concerned. It stays
/// quarantined until a version arrives that can be taken in, or it is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// The version that could not be taken in.
    pub resource_version: Option<Arc<str>>,
    /// At which step it failed.
    pub cause: Cause,
    /// What is wrong with it, in words that repeat nothing of the object.
    pub error: Arc<str>,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version.as_deref().unwrap_or("unknown");
        write!(f, "object {:?} at resourceVersion {version}: {}", self.key, self.error)
    }
}
