//! The REST client and typed resource clients.

mod bodies;
mod errors;
mod resources;
mod streams;
