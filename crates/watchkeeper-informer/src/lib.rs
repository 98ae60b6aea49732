//! From the API server to the cache: one story per key, never skipped, never invented.
//!
//! These are the parts an informer is made of, each on its own; what joins them is not here yet.
//!
//! | module | what it is |
//! |---|---|
//! | [`reflector`] | lists and watches one collection, and tells every change of it in order |
//! | [`status`] | what a reflector is doing, and how often it did what |
//! | [`delta_fifo`] | changes waiting to be applied, gathered by key |
//! | [`Store`], [`Indexer`] | the cache, its indexes and its snapshots |
//! | [`Lister`] | reading the cache by namespace, name and label |
//! | [`event`], [`handler`] | what handlers are told, and what they are |
//! | [`transition`] | from a change of the cache to the events it means |
//! | [`processor`] | events to handlers: one log, a cursor each, no handler in another's way |
//! | [`small_stores`] | a plain FIFO, a store that pushes its whole state, a cache that forgets |

pub mod controller;
pub mod delta_fifo;
pub mod event;
pub mod factory;
mod freshness;
pub mod handler;
mod key;
mod key_ref;
mod keyed_queue;
mod lister;
mod object;
pub mod processor;
mod reader;
pub mod reflector;
mod resource_version;
mod shared_informer;
pub mod small_stores;
mod spawn;
pub mod status;
mod store;
mod sync;
pub mod transition;
mod wakers;

pub use self::{
    factory::SharedInformerFactory,
    freshness::FreshnessError,
    key::{KeyError, ObjectKey},
    lister::{AnyObject, GenericLister, GenericNamespaceLister, Lister, NamespaceLister, NotFound},
    object::Object,
    reader::CacheReader,
    resource_version::ResourceVersion,
    shared_informer::{Distributor, InformerStats, SharedIndexInformer, StatusWatch, WeakInformer},
    spawn::{Spawn, Task},
    store::{
        Applied, Change, EachOf, Index, IndexError, IndexFailure, IndexHealth, IndexValues, Indexer,
        NAMESPACE_INDEX, Outcome, Replaced, Snapshot, Store, StoreError,
    },
};
