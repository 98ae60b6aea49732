//! How a slot holds its object.

use std::sync::Arc;

use crate::{Object, key::KeyRef};

/// An object as a slot holds it, and the only code that knows how.
///
/// Everything else asks for the key, for a look at the object, or for the object itself. That leaves room for holding
/// an object in another form, its key beside it, and making the object when asked.
pub(crate) struct Stored<K> {
    object: Arc<K>,
}

impl<K: Object> Stored<K> {
    pub(crate) fn new(object: Arc<K>) -> Self {
        Self { object }
    }

    pub(crate) fn key(&self) -> KeyRef<'_> {
        KeyRef::of(&*self.object)
    }

    /// The object, to keep.
    pub(crate) fn load(&self) -> Arc<K> {
        Arc::clone(&self.object)
    }

    /// The object, to keep, if `wanted` says so after a look at it.
    pub(crate) fn load_if(&self, wanted: impl FnOnce(&K) -> bool) -> Option<Arc<K>> {
        wanted(&self.object).then(|| self.load())
    }

    /// Whether this is that very object, not one like it.
    pub(crate) fn is(&self, object: &Arc<K>) -> bool {
        Arc::ptr_eq(&self.object, object)
    }

    pub(crate) fn into_object(self) -> Arc<K> {
        self.object
    }
}

impl<K> Clone for Stored<K> {
    fn clone(&self) -> Self {
        Self { object: Arc::clone(&self.object) }
    }
}
