//! Who is told.

mod filtering;
mod funcs;

use std::{future::Future, pin::Pin, sync::Arc};

pub use self::{filtering::FilteringHandler, funcs::HandlerFuncs};
use crate::event::Event;

/// Something that is told of events, one at a time and in order.
///
/// Any `Fn(&Event<K>) + Send + Sync` is one; [`HandlerFuncs`] has a function for each kind of event, and
/// [`FilteringHandler`] passes on what concerns a part of the objects.
///
/// Each handler has a task of its own: a slow one delays nobody else, and falls behind only itself. It runs
/// on the runtime's threads, so it must not block one for long; the usual handler puts a key into a work
/// queue and is done. What has to wait is an [`AsyncEventHandler`].
///
/// A handler that panics has handled its event, badly: the panic is caught, counted and logged, and it is
/// told of the next event. (In a program built with `panic = "abort"` nothing can be caught.)
pub trait EventHandler<K>: Send + Sync + 'static {
    /// Takes note of one event. The objects are shared: clone the `Arc` of what is to be kept.
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

/// A handler that may wait. It is told of the next event when its future for the last one has ended.
///
/// Costs an allocation for each event.
pub trait AsyncEventHandler<K: 'static>: Send + Sync + 'static {
    /// Takes note of one event.
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

/// What an [`AsyncEventHandler`] is doing about an event.
pub(crate) type Handling<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A handler of either kind, as a listener holds it.
pub(crate) enum Callback<K> {
    Sync(Box<dyn EventHandler<K>>),
    Async(Box<dyn Handle<K>>),
}

/// [`AsyncEventHandler`] for trait objects.
pub(crate) trait Handle<K>: Send + Sync {
    fn handle(&self, event: Event<K>) -> Handling<'_>;
}

impl<K: 'static, H: AsyncEventHandler<K>> Handle<K> for H {
    fn handle(&self, event: Event<K>) -> Handling<'_> {
        Box::pin(AsyncEventHandler::handle(self, event))
    }
}
