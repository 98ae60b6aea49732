//! The `controller` suite as a user runs it, on loads small enough for a debug build.

use std::process::Command;

#[test]
fn both_sides_reconcile_every_key_and_are_compared() {
    let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"))
        .args(["controller", "--rounds", "1", "--operations", "300"])
        .output()
        .expect("the program was built for this test");
    let said = String::from_utf8_lossy(&output.stderr);
    // In a debug build it does not matter whether the targets are met.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let judged = |line: &&str| line.starts_with("ratio controller/") && !line.ends_with("no-peer");
    assert_eq!(text.lines().filter(judged).count(), 2, "{text}");
}
