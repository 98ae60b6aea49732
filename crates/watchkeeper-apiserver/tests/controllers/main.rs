//! The server's controllers, observed through its API and on paused time.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test support: a panic fails the test, and output explains it"
)]

mod definitions;
mod garbage;
mod namespaces;
mod session;
