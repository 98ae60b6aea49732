//! Shared informers, the factory, and the controller with one handler.

mod cases;
mod factory;
mod factory_stats;
mod freshness;
mod handlers;
mod lifetime;
mod lists;
mod memory;
mod single;
mod support;
mod waiting;
