//! The contents of a store at one moment.

use std::{fmt, sync::Arc};

use super::{error::IndexError, slot_set::SlotSet, state::State, stored::Stored};
use crate::{Object, ObjectKey, ResourceVersion, key_ref::KeyRef};

/// The contents of a [`Store`](super::Store) at one moment: objects, indexes, and the version they are all true for.
///
/// Taking one copies a pointer, and it never changes. Whoever writes to the store afterwards copies the pages it
/// touches, once for each snapshot, so take a snapshot, use it and let it go: while it lives it keeps alive every
/// object that was in it.
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

    /// The object of a key.
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.state.get(KeyRef::split(key.as_ref()))
    }

    /// The object of this namespace and name. Cluster-scoped objects have no namespace.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.state.get(KeyRef { namespace: namespace.unwrap_or_default(), name })
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.state.contains(KeyRef::split(key.as_ref()))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every object, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Arc<K>> {
        self.state.iter().map(Stored::load)
    }

    /// Every object, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.state.list()
    }

    /// The objects a look at which says yes, in no particular order.
    pub fn filter(&self, mut wanted: impl FnMut(&K) -> bool) -> Vec<Arc<K>> {
        self.state.iter().filter_map(|stored| stored.load_if(&mut wanted)).collect()
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.keys()
    }

    /// The objects that have a value in an index, in no particular order.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, IndexError> {
        Ok(self.state.indexed_objects(self.state.index_number(index)?, value))
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

    pub(crate) fn filter_in_namespace(
        &self,
        namespace: &str,
        mut wanted: impl FnMut(&K) -> bool,
    ) -> Vec<Arc<K>> {
        let slots = self.state.indexed(super::NAMESPACES, namespace).into_iter().flat_map(SlotSet::iter);
        self.state.objects(slots).filter_map(|stored| stored.load_if(&mut wanted)).collect()
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
