//! Cache updates and notifications that follow from a delta.

use kube_core::Resource;

use crate::{
    Cached,
    delta_fifo::{Delta, DeltaKind},
    event::{Deleted, Event},
};

/// The update of one object in the cache, made before handlers are notified.
#[derive(Debug)]
#[must_use = "the cache is updated before handlers are notified"]
pub enum CacheUpdate<K> {
    /// Leave the object, or its absence, unchanged. Also for the same version received again: the cached
    /// object is the one that handlers received, and has to be the next `old`.
    Keep,
    /// Store this object.
    Set(Cached<K>),
    /// Remove the object.
    Remove,
}

/// An event and the handlers that receive it.
#[derive(Debug)]
pub struct Notification<K> {
    /// The event to deliver.
    pub event: Event<K>,
    /// The handlers that receive the event.
    pub audience: Audience,
}

/// The handlers that receive an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The event is for all handlers.
    All,
    /// The event is for handlers whose resync is due.
    Resyncing,
    /// The event is for handlers with [`HandlerOptions::unchanged`](crate::handler::HandlerOptions::unchanged).
    WantsUnchanged,
}

/// Returns the cache update for `delta` when the cache contains `stored`, and appends the resulting
/// notifications.
///
/// | delta | stored | cache | events | recipients |
/// |---|---|---|---|---|
/// | added, updated, replaced | no object | set | `Added` | all |
/// | | same version | keep | `Synced` | wants unchanged |
/// | | other version, or a new epoch | set | `Updated` | all |
/// | | other uid | set | `Deleted` (final state unknown), `Added` | all |
/// | deleted | object | remove | `Deleted` | all |
/// | | no object | keep | none | |
/// | sync | object | keep | `Synced` | resyncing |
/// | | no object | keep | none | |
///
/// client-go also reports the deletion of an object that no handler was called with; here the events of a key
/// always start with an `Added`. Versions are compared for equality only: the reflector rejects older ones.
pub fn transition<K: Resource>(
    delta: &Delta<K>,
    stored: Option<&Cached<K>>,
    notifications: &mut Vec<Notification<K>>,
) -> CacheUpdate<K> {
    let object = &delta.object;
    let mut notify = |audience, event| notifications.push(Notification { event, audience });
    let added = || Event::Added { object: object.clone(), is_initial: delta.is_initial };
    match (delta.kind, stored) {
        (DeltaKind::Deleted { .. } | DeltaKind::Sync, None) => CacheUpdate::Keep,
        (DeltaKind::Added | DeltaKind::Updated | DeltaKind::Replaced, None) => {
            notify(Audience::All, added());
            CacheUpdate::Set(object.clone())
        }
        (DeltaKind::Sync, Some(stored)) => {
            notify(Audience::Resyncing, Event::Synced(stored.clone()));
            CacheUpdate::Keep
        }
        (DeltaKind::Deleted { final_state_unknown }, Some(stored)) => {
            notify(Audience::All, gone(object, stored, final_state_unknown));
            CacheUpdate::Remove
        }
        (_, Some(stored)) if !delta.is_new_epoch && stored.is_same_version(object) => {
            notify(Audience::WantsUnchanged, Event::Synced(stored.clone()));
            CacheUpdate::Keep
        }
        (_, Some(stored)) if stored.is_other_incarnation(object) => {
            // The deletion was not observed, so the cached object is the last known state.
            notify(Audience::All, gone(stored, stored, true));
            notify(Audience::All, added());
            CacheUpdate::Set(object.clone())
        }
        (_, Some(stored)) => {
            let event = Event::Updated { old: stored.clone(), new: object.clone() };
            notify(Audience::All, event);
            CacheUpdate::Set(object.clone())
        }
    }
}

fn gone<K>(object: &Cached<K>, last_seen: &Cached<K>, final_state_unknown: bool) -> Event<K> {
    let (object, last_seen) = (object.clone(), last_seen.clone());
    Event::Deleted(Deleted { object, last_seen, final_state_unknown })
}
