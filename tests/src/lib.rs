//! What tests that cross crates have in common: an embedded API server, and wires to it that break when told to.

mod cluster;
mod wire;

pub use cluster::Cluster;
pub use wire::{ServiceWire, SocketWire, Switch, WireService};
