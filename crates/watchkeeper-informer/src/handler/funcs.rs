//! A handler with a function for each kind of event.

use std::fmt;

use super::EventHandler;
use crate::{
    Cached,
    event::{Deleted, Event},
};

type OnAdd<K> = Box<dyn Fn(&Cached<K>, bool) + Send + Sync>;
type OnUpdate<K> = Box<dyn Fn(&Cached<K>, &Cached<K>) + Send + Sync>;
type OnDelete<K> = Box<dyn Fn(&Deleted<K>) + Send + Sync>;

/// A handler that consists of up to three functions. Events without a function are ignored, and setting a
/// function again replaces it.
///
/// ```
/// # use watchkeeper_informer::handler::HandlerFuncs;
/// # use k8s_openapi::api::core::v1::Pod;
/// let handler = HandlerFuncs::<Pod>::new()
///     .on_add(|pod, is_initial| println!("{:?} added (initial: {is_initial})", pod.metadata().name()))
///     .on_delete(|deleted| println!("{:?} deleted", deleted.object.metadata().name()));
/// # let _ = handler;
/// ```
#[must_use = "a handler does nothing until it is registered"]
#[doc(alias = "ResourceEventHandlerFuncs")]
#[doc(alias = "UpdateFun")]
#[doc(alias = "ResourceEventHandlerDetailedFuncs")]
pub struct HandlerFuncs<K> {
    add: Option<OnAdd<K>>,
    update: Option<OnUpdate<K>>,
    delete: Option<OnDelete<K>>,
}

impl<K> HandlerFuncs<K> {
    /// Creates a handler that ignores all events.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Sets the function for added objects. The second argument is true for objects of the initial list, and for
    /// objects that were cached when the handler was added.
    #[doc(alias = "OnAdd")]
    #[doc(alias = "AddFunc")]
    pub fn on_add(mut self, function: impl Fn(&Cached<K>, bool) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(function));
        self
    }

    /// Sets the function for updated objects, called with the old and the new object. The function is also called
    /// for resyncs, with the same object twice, as in client-go.
    #[doc(alias = "OnUpdate")]
    #[doc(alias = "UpdateFunc")]
    pub fn on_update(mut self, function: impl Fn(&Cached<K>, &Cached<K>) + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(function));
        self
    }

    /// Sets the function for deleted objects. [`Deleted`] contains the last known state, and whether the deletion
    /// itself was missed (client-go's `DeletedFinalStateUnknown`).
    #[doc(alias = "OnDelete")]
    #[doc(alias = "DeleteFunc")]
    pub fn on_delete(mut self, function: impl Fn(&Deleted<K>) + Send + Sync + 'static) -> Self {
        self.delete = Some(Box::new(function));
        self
    }
}

impl<K> Default for HandlerFuncs<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: 'static> EventHandler<K> for HandlerFuncs<K> {
    fn handle(&self, event: &Event<K>) {
        match event {
            Event::Added { object, is_initial } => {
                if let Some(function) = &self.add {
                    function(object, *is_initial);
                }
            }
            Event::Updated { old, new } => {
                if let Some(function) = &self.update {
                    function(old, new);
                }
            }
            Event::Synced(object) => {
                if let Some(function) = &self.update {
                    function(object, object);
                }
            }
            Event::Deleted(deleted) => {
                if let Some(function) = &self.delete {
                    function(deleted);
                }
            }
        }
    }
}

impl<K> fmt::Debug for HandlerFuncs<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFuncs")
            .field("on_add", &self.add.is_some())
            .field("on_update", &self.update.is_some())
            .field("on_delete", &self.delete.is_some())
            .finish()
    }
}
