//! The program as a process: its output and exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod demo;
mod failures;
mod hostile;
mod logging;
mod manifests;
mod new;
mod plugins;
#[path = "../process/mod.rs"]
mod process;
mod readme;
mod serve;
mod support;
mod table;
mod terminal;
