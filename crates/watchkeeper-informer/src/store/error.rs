//! What a store refuses.

use crate::{KeyError, ResourceVersion};

/// Why a store refused a write. It refused it whole: nothing of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An object cannot be stored because it has no key.
    #[error("store an object: {0}")]
    Key(#[from] KeyError),
    /// What was to be stored is older than what is.
    #[error(
        "store the state of resourceVersion {offered}: the store has that of {held}, and never goes back; list again, \
         or replace the contents in a new epoch if the server's history was rewound"
    )]
    Backwards {
        /// The version the store is at.
        held: ResourceVersion,
        /// The version that was offered.
        offered: ResourceVersion,
    },
    /// A store holds four billion objects and no more.
    #[error("store {offered} objects beside {held}: a store holds at most {}; watch a part of them", u32::MAX - 2)]
    Full {
        /// How many there are.
        held: usize,
        /// How many were to be added.
        offered: usize,
    },
}

/// Why there is no such index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The name is taken.
    #[error("add index {name:?}: the store has an index of that name; use it, or choose another name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// No index has that name.
    #[error("look up index {name:?}: there is none; there are {known:?}, and more can be added at any time")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
}
