//! The coalesced backlog of one listener.

use foldhash::fast::RandomState;
use hashlink::LinkedHashMap;
use kube_core::Resource;

use crate::{
    Cached,
    event::{Deleted, Event},
    key::KeyText,
};

/// The events that a listener has not received, reduced to the minimum that brings its handler up to date.
///
/// For each key, the backlog contains the last object that the handler received (inside the event) and the
/// current one. Keys are delivered in the order of their first pending event.
#[derive(Debug)]
pub(super) struct CoalescedBacklog<K> {
    keys: LinkedHashMap<KeyText, PendingKey<K>, RandomState>,
    /// The number of absorbed events that will not be delivered.
    merged: u64,
}

#[derive(Debug)]
struct PendingKey<K> {
    /// The position of the first event in the log.
    position: u64,
    change: PendingChange<K>,
}

/// The pending change of a key, from the object that was delivered last to the current one.
#[derive(Debug)]
enum PendingChange<K> {
    /// A change that one event describes.
    One(Event<K>),
    /// A delete followed by an add, of another incarnation or the same one. The handler receives both events.
    Recreated { deleted: Deleted<K>, object: Cached<K>, is_initial: bool },
}

impl<K: Resource> CoalescedBacklog<K> {
    pub(super) fn new() -> Self {
        Self { keys: LinkedHashMap::with_hasher(RandomState::default()), merged: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the number of events since the last call that will not be delivered.
    pub(super) fn take_merged(&mut self) -> u64 {
        std::mem::take(&mut self.merged)
    }

    /// Returns the position of the first pending event. Everything before it was delivered.
    pub(super) fn first_position(&self) -> Option<u64> {
        self.keys.front().map(|(_, pending)| pending.position)
    }

    /// Merges the next event of the log into the backlog. Replaced events go to `released`, to be dropped
    /// outside of the lock.
    pub(super) fn absorb(&mut self, event: &Event<K>, position: u64, released: &mut Vec<Event<K>>) {
        let key = KeyText::of(event.object().key_ref());
        let Some(pending) = self.keys.get_mut(&key) else {
            self.keys.insert(key, PendingKey { position, change: PendingChange::One(event.clone()) });
            return;
        };
        self.merged += 1;
        match (&mut pending.change, event) {
            // The pending event already reports the current object.
            (_, Event::Synced(_)) => {}

            (PendingChange::One(Event::Added { .. }), Event::Deleted(_)) => {
                // Added and deleted before the handler was called: neither event is delivered.
                self.merged += 1;
                if let Some(PendingKey { change: PendingChange::One(added), .. }) = self.keys.remove(&key) {
                    released.push(added);
                }
            }
            (PendingChange::One(one @ Event::Deleted(_)), Event::Added { object, is_initial }) => {
                // Both events are delivered, so none is merged.
                self.merged -= 1;
                if let Event::Deleted(deleted) = one {
                    let (deleted, object) = (deleted.clone(), object.clone());
                    pending.change = PendingChange::Recreated { deleted, object, is_initial: *is_initial };
                }
            }
            (PendingChange::One(one), later) => {
                let next = merged(one, later);
                released.push(std::mem::replace(one, next));
            }

            (PendingChange::Recreated { deleted, object, .. }, Event::Deleted(last)) => {
                // The handler knows the first object only, and receives the delete of that one. If both
                // objects are the same incarnation, the later delete has the newer state.
                self.merged += 1;
                let end = if deleted.object.is_other_incarnation(&last.object) {
                    deleted.clone()
                } else {
                    Deleted { last_seen: deleted.last_seen.clone(), ..last.clone() }
                };
                released.push(Event::Synced(object.clone()));
                pending.change = PendingChange::One(Event::Deleted(end));
            }
            (PendingChange::Recreated { object, .. }, Event::Added { .. } | Event::Updated { .. }) => {
                let newest = event.object().clone();
                released.push(Event::Synced(std::mem::replace(object, newest)));
            }
        }
    }

    /// Removes up to `max` keys from the front and returns their events.
    pub(super) fn take(&mut self, max: usize) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(max.min(self.keys.len()));
        while events.len() < max
            && let Some((_, pending)) = self.keys.pop_front()
        {
            match pending.change {
                PendingChange::One(event) => events.push(event),
                PendingChange::Recreated { deleted, object, is_initial } => {
                    events.push(Event::Deleted(deleted));
                    events.push(Event::Added { object, is_initial });
                }
            }
        }
        events
    }
}

/// Returns one event that replaces two consecutive ones.
fn merged<K>(earlier: &Event<K>, later: &Event<K>) -> Event<K> {
    match (earlier, later) {
        (Event::Added { is_initial, .. }, _) => {
            Event::Added { object: later.object().clone(), is_initial: *is_initial }
        }
        (Event::Updated { old, .. }, Event::Updated { new, .. }) => {
            Event::Updated { old: old.clone(), new: new.clone() }
        }
        (Event::Updated { old, .. }, Event::Deleted(deleted)) => {
            Event::Deleted(Deleted { last_seen: old.clone(), ..deleted.clone() })
        }
        // A pending sync is replaced by the later change, whose `old` is the object to be synced.
        _ => later.clone(),
    }
}
