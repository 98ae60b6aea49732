//! The rows of the store suite, on loads small enough for a debug build.

use std::process::Command;

#[test]
fn every_row_of_the_store_suite_runs_with_and_without_the_peer_in_this_program() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"))
            .args(arguments)
            .output()
            .expect("the program was built for this test");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        // Exit code 1 is a missed target, which is normal in a debug build.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let tiny = ["store", "--rounds", "1", "--operations", "20"];
    let text = run(&[&tiny[..], &["--no-peer"]].concat());
    assert_eq!(text.lines().filter(|line| line.starts_with("ratio store/")).count(), 12, "{text}");

    let text = run(&[&tiny[..], &["--only", "by-index-or-scan"]].concat());
    assert!(text.contains("kube-rs"), "{text}");
}
