//! Write operations on a store and their results.

use std::{fmt, sync::Arc};

use super::index::{IndexFunction, Values};
use crate::{Cached, KeyError, Object, ObjectKey, ResourceVersion};

/// A write operation, for [`Store::apply`](super::Store::apply).
#[doc(alias = "ThreadSafeStoreTransaction")]
pub struct StoreOp<K>(Op<K>);

pub(super) enum Op<K> {
    Put(Cached<K>),
    Delete(ObjectKey),
}

impl<K: Object> StoreOp<K> {
    /// Creates an operation that stores `object` and replaces the object with the same key, if any.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no valid key.
    pub fn put(object: impl Into<Cached<K>>) -> Result<Self, KeyError> {
        let object = object.into();
        object.key_ref().check()?;
        Ok(Self(Op::Put(object)))
    }

    /// Creates an operation that removes the object stored under `key`, if any.
    pub fn delete(key: ObjectKey) -> Self {
        Self(Op::Delete(key))
    }
}

impl<K: Object> fmt::Debug for StoreOp<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Op::Put(object) => f.debug_tuple("Put").field(&object.key()).finish(),
            Op::Delete(key) => f.debug_tuple("Delete").field(key).finish(),
        }
    }
}

/// The result of one [`StoreOp`].
pub enum StoreOpResult<K> {
    /// The object was stored under a key that was not in use.
    Added,
    /// The object replaced another one.
    Updated {
        /// The object that was replaced.
        old: Cached<K>,
    },
    /// The object was removed.
    Deleted {
        /// The object that was removed.
        old: Cached<K>,
    },
    /// The key to delete was not in use.
    Absent,
}

impl<K> StoreOpResult<K> {
    /// Returns the object that was replaced or removed, if any.
    pub fn into_old(self) -> Option<Cached<K>> {
        match self {
            Self::Updated { old } | Self::Deleted { old } => Some(old),
            Self::Added | Self::Absent => None,
        }
    }
}

impl<K> fmt::Debug for StoreOpResult<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted { .. } => "Deleted",
            Self::Absent => "Absent",
        })
    }
}

/// The result of [`Store::apply`](super::Store::apply).
#[derive(Debug)]
#[non_exhaustive]
pub struct ApplyResult<K> {
    /// The result of each operation, in the order of the operations.
    pub results: Vec<StoreOpResult<K>>,
    /// The resourceVersion of the store after the operations.
    pub resource_version: Option<ResourceVersion>,
}

/// The result of [`Store::replace`](super::Store::replace).
#[non_exhaustive]
pub struct ReplaceResult<K> {
    /// The result for each object in the order of the list: [`StoreOpResult::Added`] or [`StoreOpResult::Updated`].
    pub results: Vec<StoreOpResult<K>>,
    /// The objects that were removed because the list does not contain them, in unspecified order.
    pub deleted: Vec<Cached<K>>,
    /// The resourceVersion of the store after the replacement.
    pub resource_version: Option<ResourceVersion>,
}

impl<K> fmt::Debug for ReplaceResult<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplaceResult")
            .field("results", &self.results)
            .field("deleted", &self.deleted.len())
            .field("resource_version", &self.resource_version)
            .finish()
    }
}

/// Operations with the index values of their objects: a vector, or an array of one.
pub(super) struct OpBatch<C> {
    pub(super) ops: C,
    /// The number of indexes whose values were computed. Indexes are only added, so these are the first ones.
    indexed: usize,
}

pub(super) struct IndexedOp<K> {
    pub(super) op: Op<K>,
    /// The values of the object in each index. Empty for a delete.
    pub(super) values: Vec<Values>,
}

impl<K: Object> IndexedOp<K> {
    fn new(StoreOp(op): StoreOp<K>) -> Self {
        Self { op, values: Vec::new() }
    }

    fn index(&mut self, functions: &[Arc<IndexFunction<K>>]) {
        if let Op::Put(object) = &self.op {
            let mut decoded = None;
            self.values.extend(functions.iter().map(|function| function.values(object, &mut decoded)));
        }
    }
}

impl<K: Object> OpBatch<Vec<IndexedOp<K>>> {
    pub(super) fn new(ops: impl IntoIterator<Item = StoreOp<K>>) -> Self {
        Self { ops: ops.into_iter().map(IndexedOp::new).collect(), indexed: 0 }
    }
}

impl<K: Object> OpBatch<[IndexedOp<K>; 1]> {
    pub(super) fn one(op: StoreOp<K>) -> Self {
        Self { ops: [IndexedOp::new(op)], indexed: 0 }
    }
}

impl<C> OpBatch<C> {
    pub(super) fn is_indexed_by<K>(&self, functions: &[Arc<IndexFunction<K>>]) -> bool {
        self.indexed == functions.len()
    }

    /// Computes the missing index values. Runs user code, so no lock may be held.
    pub(super) fn index<K: Object>(&mut self, functions: &[Arc<IndexFunction<K>>])
    where
        C: AsMut<[IndexedOp<K>]>,
    {
        let missing = functions.get(self.indexed..).unwrap_or_default();
        self.ops.as_mut().iter_mut().for_each(|op| op.index(missing));
        self.indexed = functions.len();
    }
}
