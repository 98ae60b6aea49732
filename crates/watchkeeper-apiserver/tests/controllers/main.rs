//! The server's controllers, observed through its API and on paused time.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: a panic is a failure, and output is shown with it"
)]

mod definitions;
mod garbage;
mod namespaces;
mod session;
