//! What a handler is told.

use std::{fmt, sync::Arc};

/// One step in the story of one object, as one handler hears it.
///
/// For each handler and key the story is `Added (Updated | Synced)* Deleted`, any number of times over:
///
/// - nothing is heard of a key before it was [`Added`](Event::Added), or after it was
///   [`Deleted`](Event::Deleted) until it is added again;
/// - `old` of an [`Updated`](Event::Updated), the object of a [`Synced`](Event::Synced) and `last_seen` of a
///   [`Deleted`](Event::Deleted) are the very `Arc` this handler was given last for that key;
/// - `old` and `new` of an update are the same incarnation: an object that was deleted and created again
///   under its name is a `Deleted` and an `Added`, even when the deletion itself was never seen.
///
/// By the time a handler hears of a state, the cache holds that state or a later one.
///
/// Not every state need be heard of: one that was overtaken while the watch was broken, or while a slow
/// handler's backlog was [coalesced](crate::processor::ListenerOptions), is passed over.
pub enum Event<K> {
    /// The object is new to this handler.
    Added {
        /// The object.
        object: Arc<K>,
        /// True while the handler is told of what was there already: the objects of the first list, or what the
        /// cache held when the handler was registered.
        is_initial: bool,
    },
    /// The object changed.
    Updated {
        /// What this handler was given last.
        old: Arc<K>,
        /// What the object is now.
        new: Arc<K>,
    },
    /// The object is what it was: a resync, or a list that found it unchanged.
    Synced(Arc<K>),
    /// The object is gone.
    Deleted(Deleted<K>),
}

/// The end of an object.
pub struct Deleted<K> {
    /// The object as it was last: its final state, or the last one known.
    pub object: Arc<K>,
    /// What this handler was given last. The same as `object` when the final state is unknown and the handler
    /// was up to date.
    pub last_seen: Arc<K>,
    /// True when the deletion itself was not seen, only that the object is gone: it may have changed since,
    /// and may have been created and deleted any number of times.
    pub final_state_unknown: bool,
}

impl<K> Event<K> {
    /// The object as it is now, or as it was last.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added { object, .. } | Self::Synced(object) => object,
            Self::Updated { new, .. } => new,
            Self::Deleted(deleted) => &deleted.object,
        }
    }

    /// What the handler was given before this for the same key: nothing for an object that is new to it.
    pub fn last_seen(&self) -> Option<&Arc<K>> {
        match self {
            Self::Added { .. } => None,
            Self::Updated { old, .. } => Some(old),
            Self::Synced(object) => Some(object),
            Self::Deleted(deleted) => Some(&deleted.last_seen),
        }
    }

    /// True for an [`Added`](Event::Added) of something that was there before the handler was.
    pub fn is_initial(&self) -> bool {
        matches!(self, Self::Added { is_initial: true, .. })
    }
}

// By hand: a derive would ask for `K: Clone`, and it is the pointers that are cloned.
impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, is_initial } => {
                Self::Added { object: Arc::clone(object), is_initial: *is_initial }
            }
            Self::Updated { old, new } => Self::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Synced(object) => Self::Synced(Arc::clone(object)),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
        }
    }
}

impl<K> Clone for Deleted<K> {
    fn clone(&self) -> Self {
        Self {
            object: Arc::clone(&self.object),
            last_seen: Arc::clone(&self.last_seen),
            final_state_unknown: self.final_state_unknown,
        }
    }
}

// Objects may hold secrets, so only the kind of event is shown.
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
