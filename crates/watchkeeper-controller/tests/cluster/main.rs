//! Everything that needs a cluster, against the embedded server; time is paused where it passes.

mod events;
mod faults;
mod leader;
mod manager;
mod objects;
mod rbac;
