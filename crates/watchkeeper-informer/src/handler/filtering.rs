//! A handler for a part of the objects.

use std::{fmt, sync::Arc};

use super::EventHandler;
use crate::event::{Deleted, Event};

/// Passes on the events of the objects a filter lets through, as if there were no others.
///
/// An object that starts to pass is an `Added`, one that ceases to is a `Deleted`, so that the handler inside
/// hears a whole story of each key too. The filter has to be a function of the object alone: it is asked
/// about the last state the handler saw as well, to know whether that one had been passed on. This is why a
/// deletion reaches the handler even when the final state would not pass.
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> FilteringHandler<F, H> {
    /// Passes on to `handler` what `filter` is true for.
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
                // As a server does for a watch with a selector: the last state that passed is the one reported.
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
