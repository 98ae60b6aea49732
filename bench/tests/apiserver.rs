//! The `apiserver` suite as a user runs it, on loads small enough for a debug build.

use std::process::Command;

fn judged(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"))
        .args(["apiserver", "--rounds", "1"])
        .args(arguments)
        .output()
        .expect("the program was built for this test");
    // In a debug build it does not matter whether the targets are met.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| line.strip_prefix("ratio apiserver/")?.split(' ').next().map(str::to_owned))
        .collect()
}

#[test]
fn every_row_ends_with_every_write_told_and_every_pod_listed() {
    let rows = ["create", "update", "create-large", "update-large", "watchers", "paging", "memory"];
    // More than one page.
    assert_eq!(judged(&["--only", &rows.join(","), "--operations", "600"]), rows);
    assert_eq!(judged(&["--only", "start", "--operations", "1"]), ["start"]);
}
