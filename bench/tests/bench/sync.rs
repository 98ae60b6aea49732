//! The `sync` suite, and several suites in one run.

use std::process::Stdio;

use crate::{bench, compared, measured, program, rows, stdout};

#[test]
fn both_sides_end_with_every_pod_and_are_compared() {
    // More than one page.
    let text = measured(&["sync", "--rounds", "1", "--operations", "600"]);
    assert_eq!(compared(&text), 5, "{text}");
}

#[test]
fn several_suites_run_with_one_command_and_end_in_one_report() {
    let file = format!("{}/suites.json", env!("CARGO_TARGET_TMPDIR"));
    let output = bench(&[
        "store",
        "fanout",
        "sync",
        "--only",
        "get,in-batches,relist",
        "--rounds",
        "1",
        "--operations",
        "20",
        "--no-peer",
        "--json",
        &file,
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(&stdout(&output)), ["store/get", "fanout/in-batches", "sync/relist"]);
    let reports: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let names: Vec<_> = reports.as_array().unwrap().iter().map(|report| report["suite"].clone()).collect();
    assert_eq!(names, ["store", "fanout", "sync"]);
}

#[test]
fn the_server_ends_with_its_parent_process() {
    let mut server = program(&["serve", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program was built for this test");
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}
