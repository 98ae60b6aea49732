//! Looking at what is listed without taking hold of it.

use std::{fmt, sync::Arc};

use kube_core::Selector;

use super::{NotFound, ResourceName, matches};
use crate::{Object, Snapshot, key::KeyRef};

/// A look at the objects of a [`Lister`](super::Lister) as of one moment.
///
/// What it hands out is borrowed from it: no reference is counted in an object, which for objects that are not in the
/// processor's cache is most of what a read costs. Clone the `Arc` of an object that is to be kept. As with a
/// [`Snapshot`], which it is made of: look, and let it go.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::{Lister, Store};
///
/// let pods = Lister::new(Store::<Pod>::new());
/// let is_there = pods.view().get("shop/web-0").is_ok_and(|pod| pod.metadata.deletion_timestamp.is_none());
/// assert!(!is_there);
/// ```
#[must_use = "a view that is not looked at is of no use"]
pub struct ListerView<'a, K> {
    snapshot: Snapshot<K>,
    resource: &'a ResourceName,
}

/// A look at the objects of a [`NamespaceLister`](super::NamespaceLister) as of one moment. As [`ListerView`] otherwise.
#[must_use = "a view that is not looked at is of no use"]
pub struct NamespaceView<'a, K> {
    view: ListerView<'a, K>,
    namespace: &'a str,
}

impl<'a, K: Object> ListerView<'a, K> {
    pub(super) fn new(snapshot: Snapshot<K>, resource: &'a ResourceName) -> Self {
        Self { snapshot, resource }
    }

    /// The objects whose labels match.
    pub fn list(&self, selector: &Selector) -> impl Iterator<Item = &Arc<K>> {
        selected(self.snapshot.iter(), selector)
    }

    /// The object of a key, such as `"namespace/name"` or an [`ObjectKey`](crate::ObjectKey).
    ///
    /// # Errors
    /// When it is not in the cache.
    pub fn get(&self, key: impl AsRef<str>) -> Result<&Arc<K>, NotFound> {
        self.find(KeyRef::split(key.as_ref()))
    }

    /// The whole cache as of that moment.
    pub fn snapshot(&self) -> &Snapshot<K> {
        &self.snapshot
    }

    fn find(&self, key: KeyRef<'_>) -> Result<&Arc<K>, NotFound> {
        self.snapshot.get_in(Some(key.namespace), key.name).ok_or_else(|| self.resource.not_found(key))
    }
}

impl<'a, K: Object> NamespaceView<'a, K> {
    pub(super) fn new(view: ListerView<'a, K>, namespace: &'a str) -> Self {
        Self { view, namespace }
    }

    /// The objects of the namespace whose labels match. Looks at that namespace's objects only.
    pub fn list(&self, selector: &Selector) -> impl Iterator<Item = &Arc<K>> {
        selected(self.view.snapshot.in_namespace(self.namespace), selector)
    }

    /// The object of this name.
    ///
    /// # Errors
    /// When it is not in the cache.
    pub fn get(&self, name: &str) -> Result<&Arc<K>, NotFound> {
        self.view.find(KeyRef { namespace: self.namespace, name })
    }
}

fn selected<'a, K: Object>(
    objects: impl Iterator<Item = &'a Arc<K>>,
    selector: &Selector,
) -> impl Iterator<Item = &'a Arc<K>> {
    let selects_all = selector.selects_all();
    objects.filter(move |object| selects_all || matches(selector, &***object))
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
