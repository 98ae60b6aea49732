//! An index, as its users hold it.

use std::{fmt, sync::Arc};

use super::{Shared, definition::Definition, definition::IndexHealth};
use crate::{Object, ObjectKey};

/// A named index of a [`Store`](super::Store): from a value to the objects that have it.
///
/// It always agrees with the store: at every moment it says what its function said of the very objects that are stored.
/// A handle, which keeps the store alive; clones are the same index.
///
/// An object for which the function fails or panics is stored and not in this index; [`Index::health`] tells.
pub struct Index<K> {
    shared: Arc<Shared<K>>,
    number: usize,
    definition: Arc<Definition<K>>,
}

impl<K: Object> Index<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, number: usize, definition: Arc<Definition<K>>) -> Self {
        Self { shared, number, definition }
    }

    /// The name it was added under.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The objects that have a value, in no particular order.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        self.shared.indexed(self.number, value)
    }

    /// The keys of the objects that have a value, sorted.
    pub fn keys(&self, value: &str) -> Vec<ObjectKey> {
        self.shared.indexed_keys(self.number, value)
    }

    /// How many objects have a value.
    pub fn count(&self, value: &str) -> usize {
        self.shared.count(self.number, value)
    }

    /// The values some object has, sorted.
    pub fn values(&self) -> Vec<Arc<str>> {
        self.shared.snapshot().state().index_values(self.number)
    }

    /// The stored objects that share a value with this object, each once, in no particular order. The object itself
    /// need not be stored.
    pub fn like(&self, object: &K) -> Vec<Arc<K>> {
        let values = self.definition.values(object);
        self.shared.snapshot().state().union(self.number, values.iter())
    }

    /// How the index function has fared.
    pub fn health(&self) -> IndexHealth {
        self.definition.health()
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            number: self.number,
            definition: Arc::clone(&self.definition),
        }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("name", &self.definition.name).finish_non_exhaustive()
    }
}
