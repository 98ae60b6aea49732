//! The cache and what reads from it: keys, store, indexes, listers, small stores.

mod index;
mod keys;
mod lister;
mod objects;
mod packed_metadata;
mod small_stores;
mod store;
mod store_model;
mod store_readers;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::Cached;

/// Returns whether a write returned this very object.
pub(crate) fn is(returned: &Cached<ConfigMap>, object: &Arc<ConfigMap>) -> bool {
    Arc::ptr_eq(&returned.get().expect("decodes"), object)
}
