//! From a delta and what the cache holds to what the cache does and who is told what.

use std::sync::Arc;

use kube_core::Resource;

use crate::{
    delta_fifo::{Delta, DeltaKind},
    event::{Deleted, Event},
    key::{is_other_incarnation, is_same_version},
};

/// What happens to the object in the cache, before anyone is told.
#[derive(Debug)]
#[must_use = "handlers are told of what the cache holds already"]
pub enum StoreChange<K> {
    /// It stays, or stays absent. Also when the same version arrives again: the cached `Arc` is the one
    /// handlers were given, and the next `old` has to be that one.
    Keep,
    /// It becomes this one.
    Set(Arc<K>),
    /// It goes.
    Remove,
}

/// An event and whom it is for.
#[derive(Debug)]
pub struct Notice<K> {
    /// What happened.
    pub event: Event<K>,
    /// Who is told.
    pub audience: Audience,
}

/// Which handlers an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All of them.
    Everyone,
    /// Those whose resync is due.
    Resyncing,
    /// Those that asked to be told of objects a list, or a repeated event, found unchanged.
    AskedForUnchanged,
}

/// What `delta` comes to when the cache holds `stored`: a change of the cache, and then these notices,
/// appended in order.
///
/// | delta | stored | cache | events | told |
/// |---|---|---|---|---|
/// | added, updated, replaced | nothing | set | `Added` | everyone |
/// | | same version | keep | `Synced` | those that asked |
/// | | other version, or a new epoch | set | `Updated` | everyone |
/// | | other uid | set | `Deleted` (final state unknown), `Added` | everyone |
/// | deleted | something | remove | `Deleted` | everyone |
/// | | nothing | keep | none | |
/// | sync | something | keep | `Synced` | those that are due |
/// | | nothing | keep | none | |
///
/// client-go also reports the deletion of an object nobody was ever told of; here no story starts with its
/// end. Versions are compared for being the same, never for order: whether a server may go back in time is
/// for whoever reads from it to judge.
pub fn transition<K: Resource>(
    delta: &Delta<K>,
    stored: Option<&Arc<K>>,
    notices: &mut Vec<Notice<K>>,
) -> StoreChange<K> {
    let object = &delta.object;
    let mut tell = |audience, event| notices.push(Notice { event, audience });
    let added = || Event::Added { object: Arc::clone(object), is_initial: delta.is_initial };
    match (delta.kind, stored) {
        (DeltaKind::Deleted { .. } | DeltaKind::Sync, None) => StoreChange::Keep,
        (DeltaKind::Added | DeltaKind::Updated | DeltaKind::Replaced, None) => {
            tell(Audience::Everyone, added());
            StoreChange::Set(Arc::clone(object))
        }
        (DeltaKind::Sync, Some(stored)) => {
            tell(Audience::Resyncing, Event::Synced(Arc::clone(stored)));
            StoreChange::Keep
        }
        (DeltaKind::Deleted { final_state_unknown }, Some(stored)) => {
            tell(Audience::Everyone, gone(object, stored, final_state_unknown));
            StoreChange::Remove
        }
        (_, Some(stored)) if !delta.is_new_epoch && is_same_version(&**stored, &**object) => {
            tell(Audience::AskedForUnchanged, Event::Synced(Arc::clone(stored)));
            StoreChange::Keep
        }
        (_, Some(stored)) if is_other_incarnation(&**stored, &**object) => {
            // The deletion was not seen, so the last state known is what the cache has.
            tell(Audience::Everyone, gone(stored, stored, true));
            tell(Audience::Everyone, added());
            StoreChange::Set(Arc::clone(object))
        }
        (_, Some(stored)) => {
            let event = Event::Updated { old: Arc::clone(stored), new: Arc::clone(object) };
            tell(Audience::Everyone, event);
            StoreChange::Set(Arc::clone(object))
        }
    }
}

fn gone<K>(object: &Arc<K>, last_seen: &Arc<K>, final_state_unknown: bool) -> Event<K> {
    let (object, last_seen) = (Arc::clone(object), Arc::clone(last_seen));
    Event::Deleted(Deleted { object, last_seen, final_state_unknown })
}
