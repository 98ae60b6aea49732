//! Tests of the peak memory of a process. Each test runs in a process of its own.
#![cfg(target_os = "linux")]

mod large_lists;
mod probe_server;
mod probes;

use std::{env, fs, process::Command};

/// The environment variable that marks a process started for a single test.
const OWN_PROCESS: &str = "WATCHKEEPER_OWN_PROCESS";

/// Returns true in a process that was started for the test `name` alone. Otherwise starts that process, and fails if the
/// test fails there.
fn is_own_process(name: &str) -> bool {
    if env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    let program = env::current_exe().expect("the path of the test program");
    let output = Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env(OWN_PROCESS, "1")
        .output()
        .expect("the test program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "no test is called {name}: {text}");
    false
}

/// Returns the peak resident memory of this process.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the status of the process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the peak resident set size");
    let kib = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}
