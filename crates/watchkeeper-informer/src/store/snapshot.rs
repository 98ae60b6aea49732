//! The contents of a store at one moment.

use std::{fmt, sync::Arc};

use super::{error::IndexError, key_text::KeyText, state::State, stored::Stored};
use crate::{Object, ObjectKey, ResourceVersion};

/// The contents of a [`Store`](super::Store) at one moment: objects, indexes, and the version they are all true for.
///
/// Taking one copies a pointer, and it never changes. What it hands out one by one is borrowed from it, so that a look at an
/// object counts no reference in it: for objects that are not in the processor's cache that is most of what a read
/// costs. Clone the `Arc` of an object that is to be kept.
///
/// Whoever writes to the store afterwards copies the pages it touches, once for each snapshot, so take a snapshot, use it
/// and let it go: while it lives it keeps alive every object that was in it.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::Store;
///
/// let store = Store::<Pod>::new();
/// // One look at one object, which is not kept.
/// let node = store.snapshot().get("shop/web-0").and_then(|pod| pod.spec.as_ref()?.node_name.clone());
/// assert_eq!(node, None);
/// // Looks that agree with each other, and one object that is kept.
/// let snapshot = store.snapshot();
/// let newest = snapshot.in_namespace("shop").max_by_key(|pod| pod.metadata.creation_timestamp.as_ref());
/// let kept = newest.cloned();
/// assert!(kept.is_none());
/// ```
pub struct Snapshot<K> {
    state: Arc<State<K>>,
}

impl<K: Object> Snapshot<K> {
    pub(super) fn new(state: Arc<State<K>>) -> Self {
        Self { state }
    }

    /// The version the contents are true for: that of the last list, event or bookmark applied. None before the first.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.state.resource_version.as_ref()
    }

    /// How often the server's history was declared to have begun anew. Versions of different epochs do not compare.
    pub fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// A look at the object of a key, such as `"namespace/name"` or an [`ObjectKey`].
    pub fn get(&self, key: impl AsRef<str>) -> Option<&Arc<K>> {
        self.state.look(key.as_ref().as_bytes())
    }

    /// A look at the object of this namespace and name. Cluster-scoped objects have no namespace.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<&Arc<K>> {
        self.state.look(KeyText::looked_for(namespace, name)?.as_bytes())
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.state.contains(key.as_ref().as_bytes())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A look at every object, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.state.iter().map(Stored::look)
    }

    /// Every object, to keep, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.state.list()
    }

    /// The objects a look at which says yes, to keep, in no particular order.
    pub fn filter(&self, mut wanted: impl FnMut(&K) -> bool) -> Vec<Arc<K>> {
        self.state.iter().filter_map(|stored| stored.load_if(&mut wanted)).collect()
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.keys()
    }

    /// A look at the objects that have a value in an index, in no particular order.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index<'a>(
        &'a self,
        index: &str,
        value: &str,
    ) -> Result<impl ExactSizeIterator<Item = &'a Arc<K>> + fmt::Debug + use<'a, K>, IndexError> {
        Ok(self.state.indexed_looks(self.state.index_number(index)?, value))
    }

    /// The keys of the objects that have a value in an index, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.state.indexed_keys(self.state.index_number(index)?, value))
    }

    /// The values an index has objects for, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_values(&self, index: &str) -> Result<Vec<Arc<str>>, IndexError> {
        Ok(self.state.index_values(self.state.index_number(index)?))
    }

    /// The names of the indexes, in the order they were added.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.state.index_names()
    }

    /// A look at every object of a namespace, in no particular order.
    pub fn in_namespace<'a>(
        &'a self,
        namespace: &str,
    ) -> impl ExactSizeIterator<Item = &'a Arc<K>> + fmt::Debug + use<'a, K> {
        self.state.indexed_looks(super::NAMESPACES, namespace)
    }

    pub(super) fn state(&self) -> &State<K> {
        &self.state
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<K: Object> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("objects", &self.len())
            .field("resource_version", &self.resource_version())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}
