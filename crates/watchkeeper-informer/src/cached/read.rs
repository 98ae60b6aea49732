//! Objects read from a snapshot, and the error of a read.

use std::{fmt, ops::Deref, sync::Arc};

use crate::reflector::QuarantineCause;

/// An object read from a snapshot: borrowed if the cache keeps it decoded, and decoded for this read otherwise.
///
/// Dereferences to the object. [`into_arc`](Self::into_arc) returns an `Arc` to keep.
pub struct CachedRef<'a, K>(Read<'a, K>);

enum Read<'a, K> {
    Borrowed(&'a Arc<K>),
    Owned(Arc<K>),
}

impl<'a, K> CachedRef<'a, K> {
    pub(crate) fn borrowed(object: &'a Arc<K>) -> Self {
        Self(Read::Borrowed(object))
    }

    pub(crate) fn owned(object: Arc<K>) -> Self {
        Self(Read::Owned(object))
    }

    /// Returns the object, to be kept longer than the snapshot.
    pub fn into_arc(self) -> Arc<K> {
        match self.0 {
            Read::Borrowed(object) => Arc::clone(object),
            Read::Owned(object) => object,
        }
    }
}

impl<K> Deref for CachedRef<'_, K> {
    type Target = Arc<K>;

    fn deref(&self) -> &Arc<K> {
        match &self.0 {
            Read::Borrowed(object) => object,
            Read::Owned(object) => object,
        }
    }
}

impl<K> fmt::Debug for CachedRef<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedRef").finish_non_exhaustive()
    }
}

/// The error returned when a packed object cannot be decoded.
///
/// The object exists, and its metadata can be read. It contains no bytes of the object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "object {key:?} at resourceVersion {} cannot be decoded: {reason}; correct the object, or the type",
    .resource_version.as_deref().unwrap_or("unknown")
)]
#[non_exhaustive]
pub struct Undecodable {
    /// The key of the object.
    pub key: Arc<str>,
    /// The resourceVersion that cannot be decoded.
    pub resource_version: Option<Arc<str>>,
    /// The step that failed.
    pub cause: QuarantineCause,
    /// The reason, without data of the object.
    pub reason: Arc<str>,
}
