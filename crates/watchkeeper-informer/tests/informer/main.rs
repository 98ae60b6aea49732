//! Shared informers, their factory and the loop they are made of, on virtual time and against a scripted
//! server.

mod cases;
mod factory;
mod freshness;
mod handlers;
mod lifetime;
mod lists;
mod single;
mod support;
mod waiting;
