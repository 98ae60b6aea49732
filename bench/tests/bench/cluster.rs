//! The `cluster` suite, against the replay server.

use std::process::Command;

use crate::{bench, measured, rows, stdout};

/// Returns whether the replay server can be built here.
#[expect(clippy::print_stderr, reason = "the reason why a test ends early")]
fn has_go() -> bool {
    let is_there = Command::new("go").arg("version").output().is_ok();
    if !is_there {
        eprintln!("skipped: go is not on PATH, so there is no replay server");
    }
    is_there
}

#[test]
fn each_side_ends_with_every_pod_and_their_figures_are_plotted() {
    if !has_go() {
        return;
    }
    let report = concat!(env!("CARGO_TARGET_TMPDIR"), "/cluster.json");
    let only = "steady,event-both-cpu,steady-stripped,steady-kube-rs,steady-kube-rs-stripped,decoded-steady,\
                narrow-steady,metadata-steady";
    let arguments = ["cluster", "--rounds", "1", "--pods", "200", "--only", only, "--json", report];
    // Each run fails unless every pod is cached and every change was delivered.
    let text = measured(&arguments);
    let want = only.split(',').map(|row| format!("cluster/{row}"));
    assert_eq!(rows(&text), want.collect::<Vec<_>>());
    for side in ["ours", "client-go", "client-go stripped", "kube-rs", "kube-rs stripped"] {
        assert!(text.contains(&format!("| {side} ")), "{side} is missing from: {text}");
    }

    let svg = concat!(env!("CARGO_TARGET_TMPDIR"), "/cluster.svg");
    let output = bench(&["plot", report, svg]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_to_string(svg).unwrap().contains("200 pods"));
}

#[test]
fn reads_and_the_mixed_load_find_every_pod() {
    if !has_go() {
        return;
    }
    let only = "get-decoded,write-p99,listing,fits,mixed-cpu";
    let text = measured(&["cluster", "--rounds", "1", "--pods", "200", "--only", only]);
    assert_eq!(rows(&text), only.split(',').map(|row| format!("cluster/{row}")).collect::<Vec<_>>());
}

#[test]
fn a_plot_of_another_suite_is_refused_with_the_row_to_run() {
    let report = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-cluster.json");
    std::fs::write(report, r#"[{"suite":"queue","runs":[]}]"#).unwrap();
    let output = bench(&["plot", report, "/nonexistent/out.svg"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no suite `cluster`"));
}
