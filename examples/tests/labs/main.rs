//! Each lab as a process: on its embedded server, and with `--kubeconfig` on a listening server that simulates a cluster and
//! whose objects the test checks.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod clients;
mod controllers;
mod informers;
#[path = "../../../crates/watchkeeper-cli/tests/process/mod.rs"]
mod process;
mod support;
