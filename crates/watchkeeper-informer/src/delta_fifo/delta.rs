//! Changes of one object.

use std::fmt;

use super::core::Watermark;
use crate::Cached;

/// A change of an object.
pub struct Delta<K> {
    /// The kind of the change.
    pub kind: DeltaKind,
    /// The object after the change, or its last state if it was deleted.
    pub object: Cached<K>,
    /// Whether the change belongs to the initial list: one of its objects, or the deletion of an object that
    /// is not in it. A later change is not initial, even if both are popped together.
    #[doc(alias = "isInInitialList")]
    pub is_initial: bool,
    /// Whether the change comes from a list that started a new epoch, in which the same resourceVersion may
    /// be another state.
    pub is_new_epoch: bool,
}

/// The kind of a [`Delta`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "DeltaType")]
pub enum DeltaKind {
    /// The object was created, or started to match the selectors.
    Added,
    /// The object was modified.
    Updated,
    /// The object was deleted.
    Deleted {
        /// Whether the deletion was not observed: the object is missing from a list, or its final state could
        /// not be decoded. The object of the delta is then the last known state.
        #[doc(alias = "DeletedFinalStateUnknown")]
        final_state_unknown: bool,
    },
    /// The object is in a list, changed or not.
    #[doc(alias = "emitDeltaTypeReplaced")]
    Replaced,
    /// The object is unchanged and is delivered again by a resync.
    Sync,
}

/// The changes of one object since it was last popped, oldest first. Never empty.
pub struct Deltas<K> {
    /// The first change is stored without an allocation, because most keys have one change only.
    pub(super) first: Delta<K>,
    rest: Vec<Delta<K>>,
    /// The watermark when the key was queued. When the key is at the front, everything before it was popped,
    /// so the consumer is complete up to this watermark.
    pub(super) complete_before: Watermark,
    /// Whether the key is part of the initial list.
    pub(super) counts_for_sync: bool,
}

impl<K> Deltas<K> {
    pub(super) fn one(delta: Delta<K>, complete_before: Watermark) -> Self {
        Self { first: delta, rest: Vec::new(), complete_before, counts_for_sync: false }
    }

    /// Returns the oldest change.
    pub fn oldest(&self) -> &Delta<K> {
        &self.first
    }

    /// Returns the newest change.
    pub fn newest(&self) -> &Delta<K> {
        self.rest.last().unwrap_or(&self.first)
    }

    /// Returns all changes, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Delta<K>> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Returns the number of changes, at least one.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        1 + self.rest.len()
    }

    pub(super) fn push(&mut self, delta: Delta<K>) {
        self.rest.push(delta);
    }

    pub(super) fn newest_mut(&mut self) -> &mut Delta<K> {
        self.rest.last_mut().unwrap_or(&mut self.first)
    }

    /// Appends later changes.
    pub(super) fn append(&mut self, later: Self) {
        self.rest.push(later.first);
        self.rest.extend(later.rest);
        self.counts_for_sync |= later.counts_for_sync;
    }
}

impl<K> Delta<K> {
    /// Returns whether the change is a deletion.
    pub fn is_deletion(&self) -> bool {
        matches!(self.kind, DeltaKind::Deleted { .. })
    }
}

// Implemented by hand, because a derive would require `K: Clone`.
impl<K> Clone for Delta<K> {
    fn clone(&self) -> Self {
        let Self { kind, ref object, is_initial, is_new_epoch } = *self;
        Self { kind, object: object.clone(), is_initial, is_new_epoch }
    }
}

impl<K> Clone for Deltas<K> {
    fn clone(&self) -> Self {
        Self {
            first: self.first.clone(),
            rest: self.rest.clone(),
            complete_before: self.complete_before.clone(),
            counts_for_sync: self.counts_for_sync,
        }
    }
}

// Objects may contain secrets, so they are not shown.
impl<K> fmt::Debug for Delta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delta")
            .field("kind", &self.kind)
            .field("is_initial", &self.is_initial)
            .finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Deltas<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
