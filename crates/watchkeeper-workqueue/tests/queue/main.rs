//! The behaviour of the queue, seen from outside.

mod facts;
mod limiters;
mod metrics;
mod model;
mod priority_and_cause;
mod reference;
mod waiting;
