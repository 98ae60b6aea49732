//! Changes on their way to the cache.

mod core;
mod delta;
mod fifo;
mod known;
mod popped;
mod sink;

pub use self::{
    delta::{Delta, DeltaKind, Deltas},
    fifo::{DeltaFifo, FifoClosed, FifoOptions},
    known::{KnownObjects, NothingKnown},
    popped::Popped,
};
