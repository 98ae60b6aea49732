//! Read access to the cache of an informer.

use std::{fmt, sync::Arc};

use crate::{Cached, Index, IndexError, Lister, Object, ObjectKey, ResourceVersion, Snapshot, Store};

/// Read-only access to the cache of an informer, with all reads of a [`Store`].
///
/// A reader keeps the cached objects alive, but not the informer. After the informer stopped, it returns the
/// last state.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::{CacheReader, factory::FactoryBuilder};
///
/// let factory = FactoryBuilder::without_client().build();
/// let cache: CacheReader<Pod> = factory.informer::<Pod>().reader();
/// assert!(cache.get("shop/web-0").is_none());
/// assert_eq!(cache.snapshot().in_namespace_cached("shop").len(), 0);
/// assert_eq!(cache.index_names(), ["namespace"]);
/// ```
pub struct CacheReader<K> {
    store: Store<K>,
}

impl<K: Object> CacheReader<K> {
    pub(crate) fn new(store: Store<K>) -> Self {
        Self { store }
    }

    /// Returns a snapshot of the current contents, with their resourceVersion.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot()
    }

    /// Returns the object stored under `key` (`"namespace/name"` or an [`ObjectKey`]).
    #[doc(alias = "GetByKey")]
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.store.get(key)
    }

    /// Returns the object with this namespace and name. The namespace of cluster-scoped objects is `None`.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.store.get_in(namespace, name)
    }

    /// Returns the object stored under `key` without decoding it.
    pub fn cached(&self, key: impl AsRef<str>) -> Option<Cached<K>> {
        self.store.cached(key)
    }

    /// Returns whether an object is stored under `key`.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.store.contains(key)
    }

    /// Returns all objects, in unspecified order.
    #[doc(alias = "List")]
    pub fn list(&self) -> Vec<Arc<K>> {
        self.store.list()
    }

    /// Returns all keys, sorted.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.store.keys()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns whether the cache contains no objects.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Returns the resourceVersion up to which the cache is complete; some objects may be newer. `None`
    /// before the initial list.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.store.resource_version()
    }

    /// Returns the index with this name.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the cache has no index with that name.
    pub fn index(&self, name: &str) -> Result<Index<K>, IndexError> {
        self.store.index(name)
    }

    /// Returns the objects with this value in an index, in unspecified order.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the cache has no index with that name.
    #[doc(alias = "ByIndex")]
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, IndexError> {
        self.store.by_index(index, value)
    }

    /// Returns the keys of the objects with this value in an index, sorted.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the cache has no index with that name.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        self.store.index_keys(index, value)
    }

    /// Returns the values for which an index contains objects, sorted.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the cache has no index with that name.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(&self, index: &str) -> Result<Vec<Arc<str>>, IndexError> {
        self.store.index_values(index)
    }

    /// Returns the names of the indexes, in the order in which they were added.
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> Vec<String> {
        self.store.index_names()
    }

    /// Returns a lister of the same cache, for reads by name, namespace and label.
    pub fn lister(&self) -> Lister<K>
    where
        K::DynamicType: Default,
    {
        Lister::new(self.store.clone())
    }
}

impl<K> Clone for CacheReader<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<K: Object> fmt::Debug for CacheReader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CacheReader").field(&self.store).finish()
    }
}
