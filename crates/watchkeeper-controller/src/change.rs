//! What happened to an object, with its old and its new state.

use std::{fmt, sync::Arc};

use watchkeeper_informer::event::Event;

/// What happened to an object, as predicates and mapping functions see it: with its state before and after.
pub struct Change<'a, K> {
    event: &'a Event<K>,
}

/// What kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The object was there before the controller was.
    Initial,
    /// The object came to be.
    Added,
    /// The object changed.
    Updated,
    /// The object is as it was, and it is time to look at it again.
    Resynced,
    /// The object is gone.
    Deleted,
}

impl<'a, K> Change<'a, K> {
    /// The change an event tells of.
    pub fn of(event: &'a Event<K>) -> Self {
        Self { event }
    }

    /// What kind of change it is.
    pub fn kind(self) -> ChangeKind {
        match self.event {
            Event::Added { is_initial: true, .. } => ChangeKind::Initial,
            Event::Added { .. } => ChangeKind::Added,
            Event::Updated { .. } => ChangeKind::Updated,
            Event::Synced(_) => ChangeKind::Resynced,
            Event::Deleted(_) => ChangeKind::Deleted,
        }
    }

    /// The state before it, as this controller was told of it. None for an object that is new to it.
    pub fn before(self) -> Option<&'a Arc<K>> {
        self.event.last_seen()
    }

    /// The state after it. None for an object that is gone.
    pub fn after(self) -> Option<&'a Arc<K>> {
        match self.event {
            Event::Added { object, .. } | Event::Synced(object) => Some(object),
            Event::Updated { new, .. } => Some(new),
            Event::Deleted(_) => None,
        }
    }

    /// The object as it is now, or as it was last.
    pub fn object(self) -> &'a Arc<K> {
        self.event.object()
    }

    /// Every state this change is about: the old and the new one of an update, the last one of a deletion. A mapping that
    /// looks at each of them forgets neither side of a move.
    pub fn states(self) -> impl Iterator<Item = &'a Arc<K>> {
        let object = self.object();
        let other = self.before().filter(|old| !Arc::ptr_eq(old, object));
        other.into_iter().chain([object])
    }

    /// Whether the deletion itself was not seen, only that the object is gone.
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
