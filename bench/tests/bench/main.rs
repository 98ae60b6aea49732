//! The program as a user runs it, on loads small enough for a debug build.

mod apiserver;
mod cli;
mod cluster;
mod controller;
mod decode;
mod store;
mod sync;

use std::process::{Command, Output};

/// Returns the command that runs the program with these arguments.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"));
    command.args(arguments);
    command
}

fn bench(arguments: &[&str]) -> Output {
    program(arguments).output().expect("the program was built for this test")
}

/// Runs the program and returns its standard output. A missed target, exit code 1, is normal in a debug build.
fn measured(arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    stdout(&output)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the names of the reported rows, as `suite/row`.
fn rows(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("ratio ")?.split(' ').next()).collect()
}

/// Returns the number of rows that were compared with a peer.
fn compared(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("ratio ") && !line.ends_with("no-peer")).count()
}
