//! A function for each kind of event.

use std::{fmt, sync::Arc};

use super::EventHandler;
use crate::event::{Deleted, Event};

type OnAdd<K> = Box<dyn Fn(&Arc<K>, bool) + Send + Sync>;
type OnUpdate<K> = Box<dyn Fn(&Arc<K>, &Arc<K>) + Send + Sync>;
type OnDelete<K> = Box<dyn Fn(&Deleted<K>) + Send + Sync>;

/// A handler made of up to three functions. Events nobody asked for are passed over.
///
/// ```
/// # use watchkeeper_informer::handler::HandlerFuncs;
/// # use k8s_openapi::api::core::v1::Pod;
/// let handler = HandlerFuncs::<Pod>::new()
///     .on_add(|pod, is_initial| println!("{:?} (was there before us: {is_initial})", pod.metadata.name))
///     .on_delete(|deleted| println!("{:?} is gone", deleted.object.metadata.name));
/// # let _ = handler;
/// ```
#[must_use = "a handler does nothing until it is registered"]
pub struct HandlerFuncs<K> {
    add: Option<OnAdd<K>>,
    update: Option<OnUpdate<K>>,
    delete: Option<OnDelete<K>>,
}

impl<K> HandlerFuncs<K> {
    /// A handler that passes over everything.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Told of an object that is new, and whether it was there before the handler.
    pub fn on_add(mut self, function: impl Fn(&Arc<K>, bool) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(function));
        self
    }

    /// Told of the old and the new state of an object. A resync has the same object as both.
    pub fn on_update(mut self, function: impl Fn(&Arc<K>, &Arc<K>) + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(function));
        self
    }

    /// Told of an object that is gone.
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
