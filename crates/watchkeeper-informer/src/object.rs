//! What the cache asks of an object.

use kube_core::Resource;

use crate::{KeyError, ObjectKey, ResourceVersion};

/// An object that can be cached: any Kubernetes object that can be shared between threads.
///
/// Implemented for everything that qualifies: the types of `k8s-openapi`, custom resources, `DynamicObject`, partial
/// metadata. `Clone` is not asked for, because nothing is ever copied.
///
/// [`Resource::meta`] is called while the store is locked and must do nothing but return the metadata.
pub trait Object: Resource + Send + Sync + 'static {
    /// The key the object is cached under.
    ///
    /// # Errors
    /// When the object has no name, or its name or namespace contains a slash.
    fn object_key(&self) -> Result<ObjectKey, KeyError>
    where
        Self: Sized,
    {
        ObjectKey::of(self)
    }

    /// What tells the object from an earlier one of the same name. Empty counts as absent.
    fn object_uid(&self) -> Option<&str> {
        self.meta().uid.as_deref().filter(|uid| !uid.is_empty())
    }

    /// The version of the object. Empty counts as absent.
    fn object_version(&self) -> Option<ResourceVersion>
    where
        Self: Sized,
    {
        ResourceVersion::of(self)
    }
}

impl<K: Resource + Send + Sync + 'static> Object for K {}
