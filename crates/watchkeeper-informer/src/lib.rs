//! From the API server to the cache: one story per key, never skipped, never invented.

pub mod reflector;
pub mod status;
pub mod delta_fifo;
pub mod event;
pub mod handler;
mod key_ref;
mod keyed_queue;
pub mod processor;
mod sync;
pub mod transition;
mod wakers;
