//! The queue of changes between a reflector and the cache.
//!
//! A reflector adds lists and watch events to a [`DeltaFifo`]. A consumer pops them in batches, applies them to its
//! cache and finishes each [`DeltaBatch`]. An informer contains such a queue and its consumer, so use this module
//! only to build a consumer of your own.

mod batch;
mod core;
mod delta;
mod fifo;
mod known;
mod sink;

pub use self::{
    batch::DeltaBatch,
    delta::{Delta, DeltaKind, Deltas},
    fifo::{DeltaFifo, FifoClosed, FifoOptions},
    known::{KnownObjects, NothingKnown},
};
