//! Discovery and REST mapping.

mod client;
mod mapper;
