//! The trait of cached objects.

use kube_core::Resource;

use crate::{KeyError, ObjectKey, ResourceVersion};

/// An object that can be cached: any Kubernetes object that can be shared between threads.
///
/// Implemented for the types of `k8s-openapi`, custom resources, `DynamicObject` and partial metadata.
/// `Clone` is not required, because objects are not copied.
///
/// [`Resource::meta`] is called while the store is locked and must only return the metadata.
pub trait Object: Resource + Send + Sync + 'static {
    /// Returns the key of the object.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no name, or its name or namespace contains a slash.
    fn object_key(&self) -> Result<ObjectKey, KeyError>
    where
        Self: Sized,
    {
        ObjectKey::of(self)
    }

    /// Returns the uid, which differs between objects that had the same name one after the other. An empty
    /// uid counts as absent.
    fn object_uid(&self) -> Option<&str> {
        self.meta().uid.as_deref().filter(|uid| !uid.is_empty())
    }

    /// Returns the resourceVersion. An empty version counts as absent.
    fn object_version(&self) -> Option<ResourceVersion>
    where
        Self: Sized,
    {
        ResourceVersion::of(self)
    }
}

impl<K: Resource + Send + Sync + 'static> Object for K {}
