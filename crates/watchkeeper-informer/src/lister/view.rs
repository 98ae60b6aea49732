//! Point-in-time views of listers.

use std::fmt;

use kube_core::Selector;

use super::{GetError, ResourceName};
use crate::{Cached, CachedRef, LabelFilter, Object, Snapshot, key::KeyRef};

/// A point-in-time view of a [`Lister`](super::Lister).
///
/// Objects that are kept decoded are borrowed from the view, so reading one does not increment its reference count, which
/// is most of the cost of reading an object that is not in the processor's cache. [`CachedRef::into_arc`] returns an
/// object to keep. A view contains a [`Snapshot`]: use it, and drop it.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::{Lister, Store};
///
/// let pods = Lister::new(Store::<Pod>::new());
/// let is_live = pods.view().get("shop/web-0").is_ok_and(|pod| pod.metadata.deletion_timestamp.is_none());
/// assert!(!is_live);
/// ```
#[must_use = "a view has no effect unless it is read"]
pub struct ListerView<'a, K> {
    snapshot: Snapshot<K>,
    resource: &'a ResourceName,
}

/// A point-in-time view of a [`NamespaceLister`](super::NamespaceLister); see [`ListerView`].
#[must_use = "a view has no effect unless it is read"]
pub struct NamespaceView<'a, K> {
    view: ListerView<'a, K>,
    namespace: &'a str,
}

impl<'a, K: Object> ListerView<'a, K> {
    pub(super) fn new(snapshot: Snapshot<K>, resource: &'a ResourceName) -> Self {
        Self { snapshot, resource }
    }

    /// Returns an iterator over the objects whose labels match.
    pub fn list(&self, selector: &Selector) -> impl Iterator<Item = CachedRef<'_, K>> {
        selected(self.snapshot.iter_cached(), selector)
    }

    /// Returns the object with this key (`"namespace/name"` or an [`ObjectKey`](crate::ObjectKey)).
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    pub fn get(&self, key: impl AsRef<str>) -> Result<CachedRef<'_, K>, GetError> {
        self.find(KeyRef::split(key.as_ref()))
    }

    /// Returns the snapshot of the whole cache.
    pub fn snapshot(&self) -> &Snapshot<K> {
        &self.snapshot
    }

    fn find(&self, key: KeyRef<'_>) -> Result<CachedRef<'_, K>, GetError> {
        let cached = self.snapshot.cached_in(Some(key.namespace), key.name);
        Ok(cached.ok_or_else(|| self.resource.not_found(key))?.try_read()?)
    }
}

impl<'a, K: Object> NamespaceView<'a, K> {
    pub(super) fn new(view: ListerView<'a, K>, namespace: &'a str) -> Self {
        Self { view, namespace }
    }

    /// Returns an iterator over the objects of the namespace whose labels match. Reads the objects of that
    /// namespace only.
    pub fn list(&self, selector: &Selector) -> impl Iterator<Item = CachedRef<'_, K>> {
        selected(self.view.snapshot.in_namespace_cached(self.namespace), selector)
    }

    /// Returns the object with this name.
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    pub fn get(&self, name: &str) -> Result<CachedRef<'_, K>, GetError> {
        self.view.find(KeyRef { namespace: self.namespace, name })
    }
}

fn selected<'a, K: Object>(
    objects: impl Iterator<Item = &'a Cached<K>>,
    selector: &Selector,
) -> impl Iterator<Item = CachedRef<'a, K>> {
    let filter = LabelFilter::from(selector.clone());
    objects.filter(move |object| filter.matches(object.metadata())).filter_map(Cached::scan)
}

impl<K: Object> fmt::Debug for ListerView<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListerView")
            .field("resource", &self.resource)
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

impl<K: Object> fmt::Debug for NamespaceView<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceView")
            .field("view", &self.view)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
