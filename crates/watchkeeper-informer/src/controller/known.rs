//! The cache as the queue and the reflector use it.

use std::{fmt::Write as _, sync::Arc};

use watchkeeper_client::decode::Identity;

use crate::{Cached, Object, Store, delta_fifo::KnownObjects, reflector::VersionLookup};

/// The objects of a store that belong to one namespace, or all of them.
pub(super) struct StoredObjects<K> {
    pub(super) store: Store<K>,
    pub(super) namespace: Option<Arc<str>>,
}

impl<K: Object> KnownObjects<K> for StoredObjects<K> {
    fn get(&self, key: &str) -> Option<Cached<K>> {
        self.store.cached(key)
    }

    fn contains(&self, key: &str) -> bool {
        self.store.contains(key)
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&str)) {
        let mut key = String::new();
        let mut visit_object = |object: &Cached<K>| {
            key.clear();
            // Writing to a string cannot fail.
            let _ = write!(key, "{}", object.key_ref());
            visit(&key);
        };
        let snapshot = self.store.snapshot();
        match &self.namespace {
            Some(namespace) => snapshot.in_namespace_cached(namespace).for_each(&mut visit_object),
            None => snapshot.iter_cached().for_each(&mut visit_object),
        }
    }
}

/// The objects of a store that need not be decoded again.
pub(super) struct StoreLookup<K>(pub(super) Store<K>);

impl<K: Object> VersionLookup<K> for StoreLookup<K> {
    fn lookup(&self, identity: &Identity) -> Option<Cached<K>> {
        self.0.cached(identity.key()).filter(|object| {
            let metadata = object.metadata();
            metadata.uid() == identity.uid() && metadata.resource_version() == identity.resource_version()
        })
    }
}
