//! Objects of a cache, decoded or packed.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | [`Cached`]: one version of an object, whose metadata can be read without decoding it |
//! | `metadata.rs` | [`MetadataRef`]: borrowed metadata of a cached object |
//! | `entry.rs`, `shared_metadata.rs` | objects that are kept encoded, with their metadata |
//! | `read.rs` | [`CachedRef`]: an object read from a snapshot; [`Undecodable`] |

mod entry;
mod metadata;
mod read;
mod shared_metadata;

use std::{fmt, sync::Arc};

use kube_core::Resource;

pub(crate) use self::{
    entry::{Entry, EntryMetadata, Expansion, Format},
    shared_metadata::SharedMetadataTable,
};
pub use self::{
    metadata::{LabelFilter, MetadataRef, OwnerRef},
    read::{CachedRef, Undecodable},
};
use crate::{KeyError, Object, ObjectKey, ResourceVersion, key::KeyRef, memory::Read};

/// An object in one version, as caches keep it and events deliver it.
///
/// The metadata is available without decoding the object: its key, uid, resourceVersion, labels, owner references
/// and finalizers. [`get`](Self::get) returns the decoded object. Whether that decodes it depends on the memory
/// policy of the informer: an object that the cache keeps decoded is returned as it is, and one that it keeps packed
/// is decoded.
///
/// A `Cached` never changes: it is the version of the object that it was created with, even if the cache contains a
/// newer one. Cloning copies a pointer.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::Cached;
///
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web-0".into());
/// let cached = Cached::from(pod);
/// assert_eq!(cached.metadata().name(), "web-0");
/// assert!(cached.get()?.spec.is_none());
/// # Ok::<(), watchkeeper_informer::Undecodable>(())
/// ```
pub struct Cached<K>(Repr<K>);

enum Repr<K> {
    /// An object that is kept decoded only.
    Decoded(Arc<K>),
    /// An object that is kept encoded, and decoded while it is resident.
    Entry(Arc<Entry<K>>),
}

impl<K: Object> Cached<K> {
    /// Returns the decoded object.
    ///
    /// # Errors
    /// Returns [`Undecodable`] if the object is kept packed and its bytes are not a `K`. The error is also reported as
    /// a [quarantined](crate::SharedIndexInformer::quarantined) object.
    pub fn get(&self) -> Result<Arc<K>, Undecodable> {
        match &self.0 {
            Repr::Decoded(object) => Ok(Arc::clone(object)),
            Repr::Entry(entry) => entry.get(Read::ByKey),
        }
    }

    /// Returns the object for a computation when it is stored. A packed object is decoded and remains packed.
    pub(crate) fn decode_transient(&self) -> Result<Arc<K>, Undecodable> {
        match &self.0 {
            Repr::Decoded(object) => Ok(Arc::clone(object)),
            Repr::Entry(entry) => entry.get(Read::Transient),
        }
    }

    /// Returns the object for one of the reads of a scan: borrowed if it is kept decoded. `None` if it cannot be decoded.
    pub(crate) fn scan(&self) -> Option<CachedRef<'_, K>> {
        match &self.0 {
            Repr::Decoded(object) => Some(CachedRef::borrowed(object)),
            Repr::Entry(entry) => entry.get(Read::Scan).ok().map(CachedRef::owned),
        }
    }

    /// Returns the object for a read by key: borrowed if it is kept decoded.
    pub(crate) fn try_read(&self) -> Result<CachedRef<'_, K>, Undecodable> {
        match &self.0 {
            Repr::Decoded(object) => Ok(CachedRef::borrowed(object)),
            Repr::Entry(entry) => entry.get(Read::ByKey).map(CachedRef::owned),
        }
    }

    /// Returns the object for a read by key. `None` if it cannot be decoded.
    pub(crate) fn read(&self) -> Option<CachedRef<'_, K>> {
        self.try_read().ok()
    }

    /// Returns the key of the object.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no name, or its name or namespace contains a slash.
    pub fn key(&self) -> Result<ObjectKey, KeyError> {
        self.key_ref().to_key()
    }

    /// Returns the resourceVersion. An empty version counts as absent.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        ResourceVersion::new(self.metadata().resource_version()?)
    }
}

impl<K: Resource> Cached<K> {
    /// Returns the metadata, without decoding the object.
    pub fn metadata(&self) -> MetadataRef<'_> {
        match &self.0 {
            Repr::Decoded(object) => MetadataRef::of(object.meta()),
            Repr::Entry(entry) => MetadataRef::of_entry(&entry.metadata),
        }
    }

    /// Returns the parts of the key without validating them.
    pub(crate) fn key_ref(&self) -> KeyRef<'_> {
        let metadata = self.metadata();
        KeyRef { namespace: metadata.namespace().unwrap_or_default(), name: metadata.name() }
    }

    /// Returns whether both objects have a uid and the uids differ: one was deleted and the other was created with its
    /// name.
    pub(crate) fn is_other_incarnation(&self, other: &Self) -> bool {
        matches!((self.metadata().uid(), other.metadata().uid()), (Some(one), Some(other)) if one != other)
    }

    /// Returns whether both objects have the same resourceVersion and do not differ in their uid.
    pub(crate) fn is_same_version(&self, other: &Self) -> bool {
        let version = self.metadata().resource_version();
        version.is_some()
            && version == other.metadata().resource_version()
            && !self.is_other_incarnation(other)
    }
}

impl<K: Send + Sync + 'static> Cached<K> {
    /// Returns the object if it is kept decoded now. Decodes nothing.
    pub fn decoded(&self) -> Option<Arc<K>> {
        match &self.0 {
            Repr::Decoded(object) => Some(Arc::clone(object)),
            Repr::Entry(entry) => entry.resident(),
        }
    }
}

impl<K> Cached<K> {
    /// Returns whether both are clones of one value.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Decoded(one), Repr::Decoded(other)) => Arc::ptr_eq(one, other),
            (Repr::Entry(one), Repr::Entry(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl<K> From<Arc<K>> for Cached<K> {
    fn from(object: Arc<K>) -> Self {
        Self(Repr::Decoded(object))
    }
}

impl<K> From<K> for Cached<K> {
    fn from(object: K) -> Self {
        Self(Repr::Decoded(Arc::new(object)))
    }
}

impl<K> From<Arc<Entry<K>>> for Cached<K> {
    fn from(entry: Arc<Entry<K>>) -> Self {
        Self(Repr::Entry(entry))
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Repr::Decoded(object) => Repr::Decoded(Arc::clone(object)),
            Repr::Entry(entry) => Repr::Entry(Arc::clone(entry)),
        })
    }
}

// Objects may contain secrets, so they are not shown.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").finish_non_exhaustive()
    }
}
