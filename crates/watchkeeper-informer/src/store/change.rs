//! What is asked of a store, and what came of it.

use std::{fmt, sync::Arc};

use super::{definition::Definition, values::Values};
use crate::{KeyError, Object, ObjectKey, ResourceVersion, key_ref::KeyRef};

/// One change of a [`Store`](super::Store), for [`apply`](super::Store::apply).
pub struct Change<K>(pub(super) Asked<K>);

pub(super) enum Asked<K> {
    Put(Arc<K>),
    Delete(ObjectKey),
}

impl<K: Object> Change<K> {
    /// Stores the object, in the place of an earlier one of the same key if there is one.
    ///
    /// # Errors
    /// When the object has no key to be stored under.
    pub fn put(object: Arc<K>) -> Result<Self, KeyError> {
        KeyRef::of(&*object).check()?;
        Ok(Self(Asked::Put(object)))
    }

    /// Removes the object of this key, if there is one.
    pub fn delete(key: ObjectKey) -> Self {
        Self(Asked::Delete(key))
    }
}

impl<K: Object> fmt::Debug for Change<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Asked::Put(object) => f.debug_tuple("Put").field(&ObjectKey::of(&**object)).finish(),
            Asked::Delete(key) => f.debug_tuple("Delete").field(key).finish(),
        }
    }
}

/// What one change did.
pub enum Outcome<K> {
    /// There was no object of this key.
    Added,
    /// There was one, and it was replaced.
    Updated {
        /// The one before.
        old: Arc<K>,
    },
    /// It was removed.
    Deleted {
        /// The one that was.
        old: Arc<K>,
    },
    /// There was nothing to delete.
    Absent,
}

impl<K> Outcome<K> {
    /// The object that was there before, if there was one.
    pub fn into_old(self) -> Option<Arc<K>> {
        match self {
            Self::Updated { old } | Self::Deleted { old } => Some(old),
            Self::Added | Self::Absent => None,
        }
    }
}

impl<K> fmt::Debug for Outcome<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted { .. } => "Deleted",
            Self::Absent => "Absent",
        })
    }
}

/// What a batch of changes did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Applied<K> {
    /// What each change did, in their order.
    pub outcomes: Vec<Outcome<K>>,
    /// The version the store is at afterwards.
    pub resource_version: Option<ResourceVersion>,
}

/// What replacing the contents did.
#[non_exhaustive]
pub struct Replaced<K> {
    /// What storing each object did, in the order of the list: [`Outcome::Added`] or [`Outcome::Updated`].
    pub outcomes: Vec<Outcome<K>>,
    /// The objects that were not in the list, in no particular order.
    pub deleted: Vec<Arc<K>>,
    /// The version the store is at afterwards.
    pub resource_version: Option<ResourceVersion>,
}

impl<K> fmt::Debug for Replaced<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replaced")
            .field("outcomes", &self.outcomes)
            .field("deleted", &self.deleted.len())
            .field("resource_version", &self.resource_version)
            .finish()
    }
}

/// Changes on their way into a store, with the index values of their objects: a list of them, or one.
pub(super) struct Batch<C> {
    pub(super) changes: C,
    /// How many of the store's indexes the values are for. Indexes are only ever added, so the number says which.
    indexed: usize,
}

pub(super) struct Prepared<K> {
    pub(super) asked: Asked<K>,
    /// One for each index; none for a delete.
    pub(super) values: Vec<Values>,
}

impl<K: Object> Prepared<K> {
    fn new(Change(asked): Change<K>) -> Self {
        Self { asked, values: Vec::new() }
    }

    fn index(&mut self, definitions: &[Arc<Definition<K>>]) {
        if let Asked::Put(object) = &self.asked {
            self.values.extend(definitions.iter().map(|definition| definition.values(object)));
        }
    }
}

impl<K: Object> Batch<Vec<Prepared<K>>> {
    pub(super) fn new(changes: impl IntoIterator<Item = Change<K>>) -> Self {
        Self { changes: changes.into_iter().map(Prepared::new).collect(), indexed: 0 }
    }
}

impl<K: Object> Batch<[Prepared<K>; 1]> {
    pub(super) fn one(change: Change<K>) -> Self {
        Self { changes: [Prepared::new(change)], indexed: 0 }
    }
}

impl<C> Batch<C> {
    pub(super) fn is_indexed_by<K>(&self, definitions: &[Arc<Definition<K>>]) -> bool {
        self.indexed == definitions.len()
    }

    /// Computes what is missing of the index values. Runs the user's code: hold no lock.
    pub(super) fn index<K: Object>(&mut self, definitions: &[Arc<Definition<K>>])
    where
        C: AsMut<[Prepared<K>]>,
    {
        let missing = definitions.get(self.indexed..).unwrap_or_default();
        self.changes.as_mut().iter_mut().for_each(|change| change.index(missing));
        self.indexed = definitions.len();
    }
}
