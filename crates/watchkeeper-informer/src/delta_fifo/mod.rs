//! The queue of changes between a reflector and the cache.

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
