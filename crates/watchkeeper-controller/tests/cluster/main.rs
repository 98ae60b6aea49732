//! Everything that needs a cluster, against the embedded server; time is paused.

mod faults;
mod leader;
mod manager;
