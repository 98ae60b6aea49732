//! The backlog of one listener, one entry a key.

use std::sync::Arc;

use kube_core::Resource;

use crate::{
    event::{Deleted, Event},
    key::{KeyRef, is_other_incarnation},
    keyed_queue::{Keyed, KeyedQueue},
};

/// What a listener has not heard, reduced to what it takes to bring it up to date.
///
/// For each key it holds what the listener was given last (within the event) and what is true now. Keys come
/// out in the order of their first unheard event.
#[derive(Debug)]
pub(super) struct Coalesced<K> {
    keys: KeyedQueue<Unheard<K>>,
    /// Events that came in and will not come out.
    merged: u64,
}

#[derive(Debug)]
struct Unheard<K> {
    /// Where in the log the first event stood.
    position: u64,
    change: Change<K>,
}

/// All that can have happened to a key, between what was heard and what is.
#[derive(Debug)]
enum Change<K> {
    /// One event tells it all.
    One(Event<K>),
    /// It went and came back, as another object or the same: the handler hears both.
    Recreated { deleted: Deleted<K>, object: Arc<K>, is_initial: bool },
}

impl<K: Resource> Coalesced<K> {
    pub(super) fn new() -> Self {
        Self { keys: KeyedQueue::new(), merged: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Events that will not come out, since the last call.
    pub(super) fn take_merged(&mut self) -> u64 {
        std::mem::take(&mut self.merged)
    }

    /// Where the first unheard event stood: everything before it has been heard.
    pub(super) fn first_position(&self) -> Option<u64> {
        self.keys.front().map(|unheard| unheard.position)
    }

    /// Takes in the next event of the log. What it lets go of goes to `released`, to be dropped where nothing
    /// is locked.
    pub(super) fn absorb(&mut self, event: &Event<K>, position: u64, released: &mut Vec<Event<K>>) {
        let key = KeyRef::of(&**event.object());
        let Some(unheard) = self.keys.get_mut(key) else {
            self.keys.push_back(Unheard { position, change: Change::One(event.clone()) });
            return;
        };
        self.merged += 1;
        match (&mut unheard.change, event) {
            // Nothing to add to what will be said anyway.
            (_, Event::Synced(_)) => {}

            (Change::One(Event::Added { .. }), Event::Deleted(_)) => {
                // Came and went.
                self.merged += 1;
                if let Some(Unheard { change: Change::One(added), .. }) = self.keys.remove(key) {
                    released.push(added);
                }
            }
            (Change::One(one @ Event::Deleted(_)), Event::Added { object, is_initial }) => {
                // Two events come out of it, so none was lost.
                self.merged -= 1;
                if let Event::Deleted(deleted) = one {
                    let (deleted, object) = (deleted.clone(), Arc::clone(object));
                    unheard.change = Change::Recreated { deleted, object, is_initial: *is_initial };
                }
            }
            (Change::One(one), later) => {
                let next = after(one, later);
                released.push(std::mem::replace(one, next));
            }

            (Change::Recreated { deleted, object, .. }, Event::Deleted(last)) => {
                // The listener has heard of the first object only, and is told the end of that one. If it was
                // the same object all along, the later news is better.
                self.merged += 1;
                let end = if is_other_incarnation(&*deleted.object, &*last.object) {
                    deleted.clone()
                } else {
                    Deleted { last_seen: Arc::clone(&deleted.last_seen), ..last.clone() }
                };
                released.push(Event::Synced(Arc::clone(object)));
                unheard.change = Change::One(Event::Deleted(end));
            }
            (Change::Recreated { object, .. }, Event::Added { .. } | Event::Updated { .. }) => {
                let newest = Arc::clone(event.object());
                released.push(Event::Synced(std::mem::replace(object, newest)));
            }
        }
    }

    /// Takes out the first keys, up to `max` of them.
    pub(super) fn take(&mut self, max: usize) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(max.min(self.keys.len()));
        while events.len() < max
            && let Some(unheard) = self.keys.pop_front()
        {
            match unheard.change {
                Change::One(event) => events.push(event),
                Change::Recreated { deleted, object, is_initial } => {
                    events.push(Event::Deleted(deleted));
                    events.push(Event::Added { object, is_initial });
                }
            }
        }
        events
    }
}

/// One event in place of two in a row.
fn after<K>(earlier: &Event<K>, later: &Event<K>) -> Event<K> {
    match (earlier, later) {
        (Event::Added { is_initial, .. }, _) => {
            Event::Added { object: Arc::clone(later.object()), is_initial: *is_initial }
        }
        (Event::Updated { old, .. }, Event::Updated { new, .. }) => {
            Event::Updated { old: Arc::clone(old), new: Arc::clone(new) }
        }
        (Event::Updated { old, .. }, Event::Deleted(deleted)) => {
            Event::Deleted(Deleted { last_seen: Arc::clone(old), ..deleted.clone() })
        }
        // What was to be synced has changed instead; the object to be synced is the `old` of the change.
        _ => later.clone(),
    }
}

impl<K: Resource> Keyed for Unheard<K> {
    fn key(&self) -> KeyRef<'_> {
        match &self.change {
            Change::One(event) => KeyRef::of(&**event.object()),
            Change::Recreated { object, .. } => KeyRef::of(&**object),
        }
    }
}
