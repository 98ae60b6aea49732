//! The components of an informer: cache, delta FIFO, processor and handlers.

mod cache;
mod delta_fifo;
mod fifo_fixture;
mod handlers;
mod processor;
