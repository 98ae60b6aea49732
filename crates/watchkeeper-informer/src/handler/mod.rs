//! Handlers of events.

mod filtering;
mod funcs;

use std::{future::Future, pin::Pin, sync::Arc};

pub use self::{
    filtering::{ByMetadata, ByObject, FilteringHandler, ObjectFilter},
    funcs::HandlerFuncs,
};
use crate::event::Event;
pub use crate::processor::{HandlerOptions, HandlerStatus, Registration, Stopped};

/// A handler that is called with events, one at a time and in order.
///
/// Any `Fn(&Event<K>) + Send + Sync` is a handler. [`HandlerFuncs`] has a function for each kind of event,
/// and [`FilteringHandler`] handles a subset of the objects.
///
/// Each handler has its own task, so a slow handler delays no other one. Handlers run on the threads of the
/// runtime and must not block them for long; a typical handler adds a key to a work queue. Use an
/// [`AsyncEventHandler`] to wait.
///
/// A panic of a handler is caught, counted and logged, and the handler is called with the next event. (With
/// `panic = "abort"` panics cannot be caught.)
#[doc(alias = "ResourceEventHandler")]
pub trait EventHandler<K>: Send + Sync + 'static {
    /// Handles one event. The objects are shared: clone the `Arc` of an object to keep it.
    fn handle(&self, event: &Event<K>);
}

impl<K, F: Fn(&Event<K>) + Send + Sync + 'static> EventHandler<K> for F {
    fn handle(&self, event: &Event<K>) {
        self(event);
    }
}

impl<K, H: EventHandler<K>> EventHandler<K> for Arc<H> {
    fn handle(&self, event: &Event<K>) {
        H::handle(self, event);
    }
}

/// An asynchronous handler. It is called with the next event when the future of the last one has completed.
///
/// Each event costs an allocation.
pub trait AsyncEventHandler<K: 'static>: Send + Sync + 'static {
    /// Handles one event.
    fn handle(&self, event: Event<K>) -> impl Future<Output = ()> + Send;
}

impl<K, F, Fut> AsyncEventHandler<K> for F
where
    K: 'static,
    F: Fn(Event<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send,
{
    fn handle(&self, event: Event<K>) -> impl Future<Output = ()> + Send {
        self(event)
    }
}

/// The future of an [`AsyncEventHandler`].
pub(crate) type Handling<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A handler of either kind.
pub(crate) enum Callback<K> {
    Sync(Box<dyn EventHandler<K>>),
    Async(Box<dyn ErasedAsyncHandler<K>>),
}

/// An object-safe [`AsyncEventHandler`].
pub(crate) trait ErasedAsyncHandler<K>: Send + Sync {
    fn handle(&self, event: Event<K>) -> Handling<'_>;
}

impl<K: 'static, H: AsyncEventHandler<K>> ErasedAsyncHandler<K> for H {
    fn handle(&self, event: Event<K>) -> Handling<'_> {
        Box::pin(AsyncEventHandler::handle(self, event))
    }
}
