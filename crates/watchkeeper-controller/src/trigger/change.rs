//! A change of an object, with its old and new state.

use std::fmt;

use watchkeeper_informer::{Cached, event::Event};

/// A change of an object as passed to predicates and mapping functions, with the states before and after.
///
/// The state before is the one last delivered to this controller: consecutive changes can be merged, so intermediate states may be
/// missing. The cache already contains the state after, or a newer one.
pub struct Change<'a, K> {
    event: &'a Event<K>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The object existed before the controller started.
    Initial,
    /// The object was created.
    Added,
    /// The object was modified.
    Updated,
    /// The object is unchanged, and a resync is due.
    Resynced,
    /// The object was deleted.
    Deleted,
}

impl<'a, K> Change<'a, K> {
    /// Creates the change that an event describes.
    pub fn of(event: &'a Event<K>) -> Self {
        Self { event }
    }

    /// Returns the kind of the change.
    pub fn kind(self) -> ChangeKind {
        match self.event {
            Event::Added { is_initial: true, .. } => ChangeKind::Initial,
            Event::Added { .. } => ChangeKind::Added,
            Event::Updated { .. } => ChangeKind::Updated,
            Event::Synced(_) => ChangeKind::Resynced,
            Event::Deleted(_) => ChangeKind::Deleted,
        }
    }

    /// Returns the state before the change, as last delivered to this controller; `None` for a new object.
    pub fn before(self) -> Option<&'a Cached<K>> {
        self.event.last_seen()
    }

    /// Returns the state after the change; `None` for a deleted object.
    pub fn after(self) -> Option<&'a Cached<K>> {
        match self.event {
            Event::Added { object, .. } | Event::Synced(object) => Some(object),
            Event::Updated { new, .. } => Some(new),
            Event::Deleted(_) => None,
        }
    }

    /// Returns the current state of the object, or its last state if it was deleted.
    pub fn object(self) -> &'a Cached<K> {
        self.event.object()
    }

    /// Returns every state that the change involves: the old and the new one of an update, the last one of a
    /// deletion. A mapping that processes each of them covers both sides of a move.
    pub fn states(self) -> impl Iterator<Item = &'a Cached<K>> {
        let object = self.object();
        let other = self.before().filter(|old| !old.ptr_eq(object));
        other.into_iter().chain([object])
    }

    /// Returns whether the deletion was inferred from a relist instead of observed, so that the final state
    /// is unknown.
    pub fn is_final_state_unknown(self) -> bool {
        matches!(self.event, Event::Deleted(deleted) if deleted.final_state_unknown)
    }
}

impl<K> Clone for Change<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Change<'_, K> {}

impl<K> fmt::Debug for Change<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Change").field(&self.kind()).finish()
    }
}
