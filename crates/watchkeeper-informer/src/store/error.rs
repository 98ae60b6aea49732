//! Errors of stores and indexes.

use crate::{KeyError, ResourceVersion};

/// The reason why a store rejected a write. A rejected write changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "TransactionError")]
pub enum StoreError {
    /// An object has no valid key.
    #[error("store an object: {0}")]
    Key(#[from] KeyError),
    /// The resourceVersion of the write is older than that of the store.
    #[error(
        "write at resourceVersion {offered}: the store is at {held} and does not go back; list again, or replace the \
         contents in a new epoch if the server's history was replaced"
    )]
    Backwards {
        /// The resourceVersion of the store.
        held: ResourceVersion,
        /// The resourceVersion of the write.
        offered: ResourceVersion,
    },
    /// The store would exceed the maximum of 2³² - 3 objects.
    #[error("add {offered} objects to {held}: a store has at most {}; watch fewer objects", u32::MAX - 2)]
    Full {
        /// The number of objects in the store.
        held: usize,
        /// The number of objects to add.
        offered: usize,
    },
}

/// The reason why an index was not found or not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The store already has an index with this name.
    #[error(
        "add index {name:?}: the store already has an index with that name; use it, or choose another name"
    )]
    Duplicate {
        /// The name of the index.
        name: String,
    },
    /// The store has no index with this name.
    #[error("look up index {name:?}: no such index; the store has {known:?}; add an index with add_index")]
    Unknown {
        /// The name of the index.
        name: String,
        /// The names of the indexes of the store.
        known: Vec<String>,
    },
}
