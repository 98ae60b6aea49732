//! How a slot holds its object.

use std::{hint::black_box, sync::Arc};

use kube_core::Resource;

/// An object as a slot holds it, and the only code that knows how.
///
/// Everything else asks for a look at the object or for the object itself; keys are kept beside. That leaves room for
/// holding an object in another form and making the object when asked.
pub(crate) struct Stored<K> {
    object: Arc<K>,
}

impl<K> Stored<K> {
    pub(crate) fn new(object: Arc<K>) -> Self {
        Self { object }
    }

    /// A look at the object, which counts no reference.
    pub(crate) fn look(&self) -> &Arc<K> {
        &self.object
    }

    /// The object, to keep.
    pub(crate) fn load(&self) -> Arc<K> {
        Arc::clone(&self.object)
    }

    /// The object, to keep, if `wanted` says so after a look at it.
    pub(crate) fn load_if(&self, wanted: impl FnOnce(&K) -> bool) -> Option<Arc<K>> {
        wanted(&self.object).then(|| self.load())
    }

    /// Says that the object is about to be loaded.
    ///
    /// Loading increments a counter that lies with the object, most likely out of the cache, and the processor makes
    /// increments one after the other. It makes reads side by side: several objects that are announced first are
    /// loaded in a third of the time.
    pub(crate) fn announce(&self) {
        black_box(Arc::strong_count(&self.object));
    }

    /// Says that the object's metadata are about to be looked at.
    pub(crate) fn announce_to_reader(&self)
    where
        K: Resource,
    {
        black_box(self.object.meta().resource_version.is_some());
    }

    /// Whether this is that very object, not one like it.
    pub(crate) fn is(&self, object: &Arc<K>) -> bool {
        Arc::ptr_eq(&self.object, object)
    }

    pub(crate) fn into_object(self) -> Arc<K> {
        self.object
    }
}

/// Objects of several slots, to keep.
pub(crate) fn load_all<'a, K: 'a>(
    objects: impl Iterator<Item = &'a Stored<K>> + Clone,
    into: &mut Vec<Arc<K>>,
) {
    objects.clone().for_each(Stored::announce);
    into.extend(objects.map(Stored::load));
}

impl<K> Clone for Stored<K> {
    fn clone(&self) -> Self {
        Self { object: Arc::clone(&self.object) }
    }
}
