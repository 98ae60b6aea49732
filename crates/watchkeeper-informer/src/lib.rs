//! From the API server to the cache: one story per key, never skipped, never invented.

pub mod reflector;
pub mod status;
