//! A handler for a subset of the objects.

use std::{fmt, sync::Arc};

use super::EventHandler;
use crate::event::{Deleted, Event};

/// A handler that passes the events of objects that match a filter to another handler.
///
/// The inner handler receives a complete sequence of events for each key, as if only matching objects existed:
///
/// | event | old object matches | new object matches | the inner handler receives |
/// |---|---|---|---|
/// | `Added` | | yes | `Added` |
/// | `Updated` | no | yes | `Added` |
/// | `Updated` | yes | yes | `Updated` |
/// | `Updated` | yes | no | `Deleted`, with the last object that matched |
/// | `Synced`, `Deleted` | yes | | the same event, even if the final state of a deleted object does not match |
///
/// In all other cases the inner handler is not called. The filter must depend on the object alone, because it
/// is called again for the old object of each event.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::handler::{FilteringHandler, HandlerFuncs};
///
/// let is_scheduled = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
/// let handler = HandlerFuncs::<Pod>::new().on_add(|pod, _| println!("{:?} scheduled", pod.metadata.name));
/// let handler = FilteringHandler::new(is_scheduled, handler);
/// # fn handles<K>(_: impl watchkeeper_informer::handler::EventHandler<K>) {}
/// # handles::<Pod>(handler);
/// ```
#[doc(alias = "FilteringResourceEventHandler")]
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> FilteringHandler<F, H> {
    /// Creates a handler that passes the events of objects for which `filter` returns true to `handler`.
    ///
    /// `filter` is a `Fn(&K) -> bool`, and `handler` an [`EventHandler`].
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
