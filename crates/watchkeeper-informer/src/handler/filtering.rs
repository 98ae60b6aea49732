//! A handler for a subset of the objects.

use std::fmt;

use super::EventHandler;
use crate::{
    Cached, MetadataRef, Object,
    event::{Deleted, Event},
};

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
/// is called again for the old object of each event. An object that cannot be decoded matches, so that no handler
/// receives a deletion that did not happen.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::handler::{FilteringHandler, HandlerFuncs};
///
/// # fn handles<K>(_: impl watchkeeper_informer::handler::EventHandler<K>) {}
/// let print = || HandlerFuncs::<Pod>::new().on_add(|pod, _| println!("{} added", pod.metadata().name()));
/// // Reads metadata only, so that no object is decoded.
/// handles::<Pod>(FilteringHandler::by_metadata(|pod| pod.label("app") == Some("web"), print()));
/// // Reads the whole object.
/// let is_scheduled = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
/// handles::<Pod>(FilteringHandler::new(is_scheduled, print()));
/// ```
#[doc(alias = "FilteringResourceEventHandler")]
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

/// A filter on cached objects.
pub trait ObjectFilter<K>: Send + Sync + 'static {
    /// Returns whether the object matches.
    fn admits(&self, object: &Cached<K>) -> bool;
}

/// An [`ObjectFilter`] that reads whole objects. See [`FilteringHandler::new`].
#[derive(Debug, Clone, Copy)]
pub struct ByObject<F>(F);

/// An [`ObjectFilter`] that reads metadata only. See [`FilteringHandler::by_metadata`].
#[derive(Debug, Clone, Copy)]
pub struct ByMetadata<F>(F);

impl<K: Object, F: Fn(&K) -> bool + Send + Sync + 'static> ObjectFilter<K> for ByObject<F> {
    fn admits(&self, object: &Cached<K>) -> bool {
        object.get().map_or(true, |object| (self.0)(&object))
    }
}

impl<K: Object, F: Fn(MetadataRef<'_>) -> bool + Send + Sync + 'static> ObjectFilter<K> for ByMetadata<F> {
    fn admits(&self, object: &Cached<K>) -> bool {
        (self.0)(object.metadata())
    }
}

impl<F, H> FilteringHandler<ByObject<F>, H> {
    /// Creates a handler that passes the events of objects for which `filter` returns true to `handler`.
    ///
    /// `filter` is a `Fn(&K) -> bool`, and `handler` an [`EventHandler`].
    pub fn new(filter: F, handler: H) -> Self {
        Self { filter: ByObject(filter), handler }
    }
}

impl<F: Fn(MetadataRef<'_>) -> bool, H> FilteringHandler<ByMetadata<F>, H> {
    /// Creates a handler that passes the events of objects for whose metadata `filter` returns true to `handler`. No
    /// object is decoded for the filter.
    pub fn by_metadata(filter: F, handler: H) -> Self {
        Self { filter: ByMetadata(filter), handler }
    }
}

impl<K, F, H> EventHandler<K> for FilteringHandler<F, H>
where
    K: 'static,
    F: ObjectFilter<K>,
    H: EventHandler<K>,
{
    fn handle(&self, event: &Event<K>) {
        let passed = event.last_seen().is_some_and(|object| self.filter.admits(object));
        match event {
            Event::Updated { old, new } => match (passed, self.filter.admits(new)) {
                (true, true) => self.handler.handle(event),
                (false, true) => {
                    self.handler.handle(&Event::Added { object: new.clone(), is_initial: false });
                }
                // As in a watch with a selector, the delete reports the last state that matched.
                (true, false) => self.handler.handle(&Event::Deleted(Deleted {
                    object: old.clone(),
                    last_seen: old.clone(),
                    final_state_unknown: false,
                })),
                (false, false) => {}
            },
            Event::Added { object, .. } => {
                if self.filter.admits(object) {
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
