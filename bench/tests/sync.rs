//! The `sync` suite as a user runs it, on loads small enough for a debug build.

use std::process::{Command, Output, Stdio};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"))
        .args(arguments)
        .output()
        .expect("the program was built for this test")
}

#[test]
fn both_sides_end_with_every_pod_and_are_compared() {
    // More than one page.
    let output = bench(&["sync", "--rounds", "1", "--operations", "600"]);
    let said = String::from_utf8_lossy(&output.stderr);
    // In a debug build it does not matter whether the targets are met.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let judged: Vec<_> =
        text.lines().filter(|line| line.starts_with("ratio sync/") && !line.ends_with("no-peer")).collect();
    assert_eq!(judged.len(), 5, "{text}");
}

#[test]
fn several_suites_run_with_one_command_and_end_in_one_report() {
    let file = format!("{}/suites.json", env!("CARGO_TARGET_TMPDIR"));
    let rows = "get,in-batches,relist";
    let output = bench(&[
        "store",
        "fanout",
        "sync",
        "--only",
        rows,
        "--rounds",
        "1",
        "--operations",
        "20",
        "--no-peer",
        "--json",
        &file,
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let judged: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("ratio ")?.split(' ').next()).collect();
    assert_eq!(judged, ["store/get", "fanout/in-batches", "sync/relist"]);
    let reports: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let names: Vec<_> = reports.as_array().unwrap().iter().map(|report| report["suite"].clone()).collect();
    assert_eq!(names, ["store", "fanout", "sync"]);
}

#[test]
fn the_server_ends_with_whoever_started_it() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"))
        .args(["serve", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program was built for this test");
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}
