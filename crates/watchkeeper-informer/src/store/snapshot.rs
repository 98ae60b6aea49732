//! Point-in-time views of a store.

use std::{fmt, sync::Arc};

use super::{contents::Contents, error::IndexError};
use crate::{Cached, CachedRef, MetadataRef, Object, ObjectKey, ResourceVersion, key::KeyText};

/// A point-in-time, read-only view of a [`Store`](super::Store): its objects, indexes and resourceVersion.
///
/// Taking a snapshot copies one pointer, and a snapshot never changes. Objects that are kept decoded are borrowed from it,
/// which leaves their reference counts alone: incrementing the count of an object that is not in the processor's cache is
/// most of the cost of a read. Packed objects are decoded when they are read; the methods whose names end with `cached`
/// return objects without decoding them, with their metadata.
///
/// The first write to each page after a snapshot copies the page, and a snapshot keeps all of its objects alive. Take a
/// snapshot, use it, and drop it.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::Store;
///
/// let store = Store::<Pod>::new();
/// // Reads one object without keeping it.
/// let node = store.snapshot().get("shop/web-0").and_then(|pod| pod.spec.as_ref()?.node_name.clone());
/// assert_eq!(node, None);
/// // Makes several reads that agree with each other, and keeps one object.
/// let snapshot = store.snapshot();
/// let newest = snapshot.in_namespace("shop").max_by_key(|pod| pod.metadata.creation_timestamp.clone());
/// let kept = newest.map(|pod| pod.into_arc());
/// assert!(kept.is_none());
/// ```
pub struct Snapshot<K> {
    contents: Arc<Contents<K>>,
}

impl<K: Object> Snapshot<K> {
    pub(super) fn new(contents: Arc<Contents<K>>) -> Self {
        Self { contents }
    }

    /// Returns the resourceVersion of the contents: that of the last list, event or bookmark that was applied. `None` if
    /// none was.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.contents.resource_version.as_ref()
    }

    /// Returns the history epoch. It increases each time the server's history is found to have been replaced.
    /// Versions of different epochs do not compare.
    pub fn epoch(&self) -> u64 {
        self.contents.epoch
    }

    /// Returns the object stored under `key` (`"namespace/name"` or an [`ObjectKey`]).
    #[doc(alias = "GetByKey")]
    ///
    /// Also returns `None` for a packed object that cannot be decoded; [`cached`](Self::cached) distinguishes both.
    pub fn get(&self, key: impl AsRef<str>) -> Option<CachedRef<'_, K>> {
        self.cached(key)?.read()
    }

    /// Returns the object with this namespace and name. The namespace of cluster-scoped objects is `None`.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<CachedRef<'_, K>> {
        self.cached_in(namespace, name)?.read()
    }

    /// Returns the object stored under `key` without decoding it.
    pub fn cached(&self, key: impl AsRef<str>) -> Option<&Cached<K>> {
        self.contents.get(key.as_ref().as_bytes())
    }

    /// Returns the metadata of the object stored under `key` without decoding it.
    pub fn metadata(&self, key: impl AsRef<str>) -> Option<MetadataRef<'_>> {
        Some(self.cached(key)?.metadata())
    }

    pub(crate) fn cached_in(&self, namespace: Option<&str>, name: &str) -> Option<&Cached<K>> {
        self.contents.get(KeyText::for_lookup(namespace, name)?.as_bytes())
    }

    /// Returns whether an object is stored under `key`.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.contents.contains(key.as_ref().as_bytes())
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.contents.len()
    }

    /// Returns whether the snapshot contains no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an iterator over all objects, in unspecified order. Packed objects are decoded one after the other, and those
    /// that cannot be decoded are skipped.
    pub fn iter(&self) -> impl Iterator<Item = CachedRef<'_, K>> {
        self.iter_cached().filter_map(Cached::scan)
    }

    /// Returns an iterator over all objects without decoding them, in unspecified order.
    pub fn iter_cached(&self) -> impl Iterator<Item = &Cached<K>> {
        self.contents.iter()
    }

    /// Returns all objects, in unspecified order. Packed objects are decoded, and those that cannot be decoded are left out.
    #[doc(alias = "List")]
    pub fn list(&self) -> Vec<Arc<K>> {
        let mut objects = Vec::with_capacity(self.len());
        objects.extend(self.iter().map(CachedRef::into_arc));
        objects
    }

    /// Returns the objects that match `predicate`, in unspecified order. Decodes every packed object;
    /// [`filter_cached`](Self::filter_cached) decodes none.
    pub fn filter(&self, mut predicate: impl FnMut(&K) -> bool) -> Vec<Arc<K>> {
        self.iter().filter(|object| predicate(object)).map(CachedRef::into_arc).collect()
    }

    /// Returns the objects whose metadata matches `predicate`, without decoding them, in unspecified order.
    pub fn filter_cached(&self, mut predicate: impl FnMut(MetadataRef<'_>) -> bool) -> Vec<Cached<K>> {
        self.iter_cached().filter(|object| predicate(object.metadata())).cloned().collect()
    }

    /// Returns all keys, sorted.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.contents.keys()
    }

    /// Returns an iterator over the objects with this value in an index, in unspecified order.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    #[doc(alias = "ByIndex")]
    pub fn by_index<'a>(
        &'a self,
        index: &str,
        value: &str,
    ) -> Result<impl Iterator<Item = CachedRef<'a, K>> + use<'a, K>, IndexError> {
        Ok(self.by_index_cached(index, value)?.filter_map(Cached::read))
    }

    /// Returns an iterator over the objects with this value in an index without decoding them, in unspecified order.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    pub fn by_index_cached<'a>(
        &'a self,
        index: &str,
        value: &str,
    ) -> Result<impl ExactSizeIterator<Item = &'a Cached<K>> + fmt::Debug + use<'a, K>, IndexError> {
        Ok(self.contents.indexed(self.contents.index_number(index)?, value))
    }

    /// Returns the keys of the objects with this value in an index, sorted.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.contents.indexed_keys(self.contents.index_number(index)?, value))
    }

    /// Returns the values for which an index contains objects, sorted.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(&self, index: &str) -> Result<Vec<Arc<str>>, IndexError> {
        Ok(self.contents.index_values(self.contents.index_number(index)?))
    }

    /// Returns the names of the indexes, in the order in which they were added.
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.contents.index_names()
    }

    /// Returns an iterator over the objects of a namespace, in unspecified order.
    pub fn in_namespace<'a>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = CachedRef<'a, K>> + use<'a, K> {
        self.in_namespace_cached(namespace).filter_map(Cached::scan)
    }

    /// Returns an iterator over the objects of a namespace without decoding them, in unspecified order.
    pub fn in_namespace_cached<'a>(
        &'a self,
        namespace: &str,
    ) -> impl ExactSizeIterator<Item = &'a Cached<K>> + fmt::Debug + use<'a, K> {
        self.contents.indexed(super::NAMESPACES, namespace)
    }

    pub(super) fn contents(&self) -> &Contents<K> {
        &self.contents
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self { contents: Arc::clone(&self.contents) }
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
