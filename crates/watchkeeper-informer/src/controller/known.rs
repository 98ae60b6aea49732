//! The cache as the queue and the reflector use it.

use std::{fmt::Write as _, sync::Arc};

use watchkeeper_client::decode::Identity;

use crate::{Object, Store, delta_fifo::KnownObjects, key::KeyRef, reflector::VersionLookup};

/// The objects of a store that belong to one namespace, or all of them.
pub(super) struct StoredObjects<K> {
    pub(super) store: Store<K>,
    pub(super) namespace: Option<Arc<str>>,
}

impl<K: Object> KnownObjects<K> for StoredObjects<K> {
    fn get(&self, key: &str) -> Option<Arc<K>> {
        self.store.get(key)
    }

    fn contains(&self, key: &str) -> bool {
        self.store.contains(key)
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&str)) {
        let mut key = String::new();
        let mut visit_object = |object: &Arc<K>| {
            key.clear();
            // Writing to a string cannot fail.
            let _ = write!(key, "{}", KeyRef::of(&**object));
            visit(&key);
        };
        let snapshot = self.store.snapshot();
        match &self.namespace {
            Some(namespace) => snapshot.in_namespace(namespace).for_each(&mut visit_object),
            None => snapshot.iter().for_each(&mut visit_object),
        }
    }
}

/// The objects of a store that need not be decoded again.
pub(super) struct StoreLookup<K>(pub(super) Store<K>);

impl<K: Object> VersionLookup<K> for StoreLookup<K> {
    fn lookup(&self, identity: &Identity) -> Option<Arc<K>> {
        self.0.get(identity.key()).filter(|object| {
            let meta = object.meta();
            meta.uid.as_deref() == identity.uid()
                && meta.resource_version.as_deref() == identity.resource_version()
        })
    }
}
