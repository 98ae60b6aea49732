//! What happened to one object.

use std::{fmt, sync::Arc};

use kube_core::Resource;

use super::core::Mark;
use crate::{key::KeyRef, keyed_queue::Keyed};

/// One thing that happened to an object.
pub struct Delta<K> {
    /// What happened.
    pub kind: DeltaKind,
    /// The object after it happened, or its last state when it is gone.
    pub object: Arc<K>,
    /// True for what the first list brought: its objects, and the deletions of what it no longer had. A
    /// change that arrived behind the first list is not part of it, even if both are popped together.
    pub is_initial: bool,
    /// True for what a list brought that began a new epoch: the server's versions count from another
    /// beginning, and the same version may be another state.
    pub is_new_epoch: bool,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeltaKind {
    /// The server said that it was created, or came into view.
    Added,
    /// The server said that it changed.
    Updated,
    /// It is gone.
    Deleted {
        /// True when nobody saw it go: it was missing from a list, or its deletion could not be read. The
        /// object is then the last state known.
        final_state_unknown: bool,
    },
    /// A list had it, changed or not.
    Replaced,
    /// Nothing happened; handlers are to look at it again.
    Sync,
}

/// Everything that happened to one object since it was popped last, oldest first. Never empty.
pub struct Deltas<K> {
    /// Most often there is no more than this one, and it takes no allocation.
    pub(super) first: Delta<K>,
    rest: Vec<Delta<K>>,
    /// How far everything was known when the key got in line: once it is this key's turn, everything before
    /// it has been popped, so the consumer is complete up to here.
    pub(super) complete_before: Mark,
    /// True when the first list put it in line, or found it there.
    pub(super) counts_for_sync: bool,
}

impl<K> Deltas<K> {
    pub(super) fn one(delta: Delta<K>, complete_before: Mark) -> Self {
        Self { first: delta, rest: Vec::new(), complete_before, counts_for_sync: false }
    }

    /// What happened first.
    pub fn oldest(&self) -> &Delta<K> {
        &self.first
    }

    /// What happened last.
    pub fn newest(&self) -> &Delta<K> {
        self.rest.last().unwrap_or(&self.first)
    }

    /// All of it, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Delta<K>> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// How many there are, at least one.
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

    /// Appends what happened later.
    pub(super) fn append(&mut self, later: Self) {
        self.rest.push(later.first);
        self.rest.extend(later.rest);
        self.counts_for_sync |= later.counts_for_sync;
    }
}

impl<K> Delta<K> {
    /// True when the object is gone after this.
    pub fn is_deletion(&self) -> bool {
        matches!(self.kind, DeltaKind::Deleted { .. })
    }
}

impl<K: Resource> Keyed for Deltas<K> {
    fn key(&self) -> KeyRef<'_> {
        KeyRef::of(&*self.first.object)
    }
}

// By hand: a derive would ask for `K: Clone`.
impl<K> Clone for Delta<K> {
    fn clone(&self) -> Self {
        let Self { kind, ref object, is_initial, is_new_epoch } = *self;
        Self { kind, object: Arc::clone(object), is_initial, is_new_epoch }
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

// Objects may hold secrets, so they are not shown.
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
