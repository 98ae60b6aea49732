//! The cache of an informer, for those who do not keep it.

use std::{fmt, sync::Arc};

use crate::{Index, IndexError, Lister, Object, ObjectKey, ResourceVersion, Snapshot, Store};

/// Reads the cache of an informer, in every way a [`Store`] can be read. There is no way to write: what is in
/// the cache is what the server said, and never what somebody thought it would say.
///
/// It keeps what is in the cache, and not the informer: when that stops, this goes on showing the state it
/// stopped at.
pub struct CacheReader<K> {
    store: Store<K>,
}

impl<K: Object> CacheReader<K> {
    pub(crate) fn new(store: Store<K>) -> Self {
        Self { store }
    }

    /// The contents as they are now, and the version they are true for.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot()
    }

    /// The object of a key, such as `"namespace/name"` or an [`ObjectKey`].
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.store.get(key)
    }

    /// The object of this namespace and name. Cluster-scoped objects have no namespace.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.store.get_in(namespace, name)
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.store.contains(key)
    }

    /// Every object, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.store.list()
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.store.keys()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// The version up to which nothing is missing from the cache; some objects may be newer. None before the
    /// first list.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.store.resource_version()
    }

    /// The index of this name.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index(&self, name: &str) -> Result<Index<K>, IndexError> {
        self.store.index(name)
    }

    /// The objects that have a value in an index, in no particular order.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, IndexError> {
        self.store.by_index(index, value)
    }

    /// The keys of the objects that have a value in an index, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        self.store.index_keys(index, value)
    }

    /// The values an index has objects for, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_values(&self, index: &str) -> Result<Vec<Arc<str>>, IndexError> {
        self.store.index_values(index)
    }

    /// The names of the indexes, in the order they were added.
    pub fn index_names(&self) -> Vec<String> {
        self.store.index_names()
    }

    /// The same, read by name, namespace and label.
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
