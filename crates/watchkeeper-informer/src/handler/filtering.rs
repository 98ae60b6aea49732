//! A handler for a subset of the objects.

use std::{fmt, sync::Arc};

use super::EventHandler;
use crate::event::{Deleted, Event};

/// A handler that passes on the events of objects that match a filter.
///
/// An update after which an object matches for the first time becomes an `Added`, and one after which it no
/// longer matches becomes a `Deleted`, so that the inner handler receives a complete sequence of events for
/// each key. The filter must be a function of the object alone: it is also called with the last object that
/// the handler received, to find out whether that one matched. A deletion is therefore passed on even if the
/// final state does not match.
#[doc(alias = "FilteringResourceEventHandler")]
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> FilteringHandler<F, H> {
    /// Creates a handler that passes the events of objects that match `filter` to `handler`.
    pub fn new(filter: F, handler: H) -> Self {
        Self { filter, handler }
    }
}

impl<K, F, H> EventHandler<K> for FilteringHandler<F, H>
where
    K: 'static,
    F: Fn(&K) -> bool + Send + Sync + 'static,
    H: EventHandler<K>,
{
    fn handle(&self, event: &Event<K>) {
        let passed = event.last_seen().is_some_and(|object| (self.filter)(object));
        match event {
            Event::Updated { old, new } => match (passed, (self.filter)(new)) {
                (true, true) => self.handler.handle(event),
                (false, true) => {
                    self.handler.handle(&Event::Added { object: Arc::clone(new), is_initial: false });
                }
                // As in a watch with a selector, the delete reports the last state that matched.
                (true, false) => self.handler.handle(&Event::Deleted(Deleted {
                    object: Arc::clone(old),
                    last_seen: Arc::clone(old),
                    final_state_unknown: false,
                })),
                (false, false) => {}
            },
            Event::Added { object, .. } => {
                if (self.filter)(object) {
                    self.handler.handle(event);
                }
            }
            Event::Synced(_) | Event::Deleted(_) => {
                if passed {
                    self.handler.handle(event);
                }
            }
        }
    }
}

impl<F, H> fmt::Debug for FilteringHandler<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilteringHandler").finish_non_exhaustive()
    }
}
