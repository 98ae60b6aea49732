//! Support for tests across crates: an embedded API server, and connections to it that tests can break.

mod cluster;
mod wire;

pub use cluster::Cluster;
pub use wire::{ServiceWire, SocketOutage, SocketWire, Wire};
