//! Events that handlers receive.

use std::fmt;

use crate::Cached;

/// An event of one object, as delivered to one handler.
///
/// For each handler and key, the sequence of events is `Added (Updated | Synced)* Deleted`, repeated:
///
/// - The first event of a key is [`Added`](Event::Added). After [`Deleted`](Event::Deleted), the next one is
///   `Added` again.
/// - `old` of an [`Updated`](Event::Updated), the object of a [`Synced`](Event::Synced) and `last_seen` of a
///   [`Deleted`](Event::Deleted) are the version that this handler received last for that key.
/// - `old` and `new` of an update have the same uid. An object that was deleted and created again with the
///   same name is a `Deleted` and an `Added`, even if the deletion was not observed.
///
/// When a handler is called, the cache contains the state of the event or a later one.
///
/// Handlers do not receive every state. Two kinds of states are skipped: those that were superseded while the watch
/// was interrupted and the collection was listed again, and those that were superseded while the backlog of a
/// slow handler was [coalesced](crate::handler::HandlerOptions).
pub enum Event<K> {
    /// The object is new to this handler.
    #[doc(alias = "CreateEvent")]
    Added {
        /// The added object.
        object: Cached<K>,
        /// Whether the object is not new on the server: it is in the initial list of the informer, or was cached
        /// when the handler was added.
        is_initial: bool,
    },
    /// The object changed.
    #[doc(alias = "UpdateEvent")]
    Updated {
        /// The object that this handler received last.
        old: Cached<K>,
        /// The current object.
        new: Cached<K>,
    },
    /// The object is unchanged: a resync is due. Handlers with
    /// [`HandlerOptions::unchanged`](crate::handler::HandlerOptions::unchanged) also receive this event when a
    /// relist finds the object unchanged.
    Synced(Cached<K>),
    /// The object was deleted.
    #[doc(alias = "DeleteEvent")]
    Deleted(Deleted<K>),
}

/// The deletion of an object.
pub struct Deleted<K> {
    /// The final state of the object, or the last known one.
    pub object: Cached<K>,
    /// The object that this handler received last. Equal to `object` if the final state is unknown and the
    /// handler was up to date.
    pub last_seen: Cached<K>,
    /// Whether the deletion itself was not observed, only the absence of the object. The object may have
    /// changed before it was deleted, and may have been created and deleted any number of times.
    pub final_state_unknown: bool,
}

impl<K> Event<K> {
    /// Returns the current object, or the last state of a deleted one.
    pub fn object(&self) -> &Cached<K> {
        match self {
            Self::Added { object, .. } | Self::Synced(object) => object,
            Self::Updated { new, .. } => new,
            Self::Deleted(deleted) => &deleted.object,
        }
    }

    /// Returns the object that the handler received last for this key, or `None` for an
    /// [`Added`](Event::Added).
    pub fn last_seen(&self) -> Option<&Cached<K>> {
        match self {
            Self::Added { .. } => None,
            Self::Updated { old, .. } => Some(old),
            Self::Synced(object) => Some(object),
            Self::Deleted(deleted) => Some(&deleted.last_seen),
        }
    }

    /// Returns whether this is an [`Added`](Event::Added) of the initial list, or of an object that was cached
    /// when the handler was added.
    pub fn is_initial(&self) -> bool {
        matches!(self, Self::Added { is_initial: true, .. })
    }
}

// Implemented by hand, because a derive would require `K: Clone`.
impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, is_initial } => {
                Self::Added { object: object.clone(), is_initial: *is_initial }
            }
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Synced(object) => Self::Synced(object.clone()),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
        }
    }
}

impl<K> Clone for Deleted<K> {
    fn clone(&self) -> Self {
        Self {
            object: self.object.clone(),
            last_seen: self.last_seen.clone(),
            final_state_unknown: self.final_state_unknown,
        }
    }
}

// Objects may contain secrets, so only the kind of the event is shown.
impl<K> fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { is_initial, .. } => {
                f.debug_struct("Added").field("is_initial", is_initial).finish_non_exhaustive()
            }
            Self::Updated { .. } => f.debug_struct("Updated").finish_non_exhaustive(),
            Self::Synced(_) => f.debug_struct("Synced").finish_non_exhaustive(),
            Self::Deleted(deleted) => deleted.fmt(f),
        }
    }
}

impl<K> fmt::Debug for Deleted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deleted")
            .field("final_state_unknown", &self.final_state_unknown)
            .finish_non_exhaustive()
    }
}
