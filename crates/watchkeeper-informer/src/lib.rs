//! From the API server to the cache: one story per key, never skipped, never invented.

mod key;
mod lister;
mod object;
mod resource_version;
pub mod small_stores;
mod store;

pub use self::{
    key::{KeyError, ObjectKey},
    lister::{AnyObject, GenericLister, GenericNamespaceLister, Lister, NamespaceLister, NotFound},
    object::Object,
    resource_version::ResourceVersion,
    store::{
        Applied, Change, EachOf, Index, IndexError, IndexFailure, IndexHealth, IndexValues, Indexer,
        NAMESPACE_INDEX, Outcome, Replaced, Snapshot, Store, StoreError,
    },
};
