//! Arguments, reports and errors, and the `queue` and `fanout` suites.

use crate::{bench, compared, measured, program, rows, stdout};

/// The flags of a very short run.
const TINY: [&str; 7] = ["queue", "--quick", "--rounds", "1", "--no-peer", "--operations", "50"];

#[test]
fn a_row_without_peer_prints_its_one_line_and_succeeds() {
    let output = bench(&[&TINY[..], &["--only", "lockstep"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");

    let text = stdout(&output);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("ratio ")).collect();
    assert_eq!(lines, ["ratio queue/lockstep n/a target >=1.00x no-peer"]);
    assert!(stderr.contains("[1/1] round 1 queue/lockstep ours: "), "no line for the run in: {stderr}");
    assert!(stderr.contains("rough"), "--quick does not say that it is rough: {stderr}");
}

#[test]
fn every_row_that_does_not_wait_runs_and_reports_in_the_order_of_the_suite() {
    let only = "memory-delayed,lockstep,distinct-1p1c,distinct-4p4c,duplicate,duplicate-hot,rate-limited,\
                delay-insert,memory-queued";
    let output = bench(&[&TINY[..], &["--only", only]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let want = [
        "lockstep",
        "distinct-1p1c",
        "distinct-4p4c",
        "duplicate",
        "duplicate-hot",
        "rate-limited",
        "delay-insert",
        "memory-queued",
        "memory-delayed",
    ];
    assert_eq!(rows(&stdout(&output)), want.map(|name| format!("queue/{name}")));
}

#[test]
fn the_fan_out_runs_beside_its_channels() {
    let text = measured(&["fanout", "--quick", "--rounds", "1", "--operations", "500"]);
    assert_eq!(compared(&text), 3, "{text}");
}

#[test]
fn the_json_report_holds_every_run_and_the_summaries() {
    let file = format!("{}/report.json", env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["queue", "--rounds", "2", "--no-peer", "--operations", "50"];
    let output = bench(&[&arguments[..], &["--only", "memory-queued", "--json", &file]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let reports: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let report = &reports[0];
    assert_eq!(report["suite"], "queue");
    let rounds: Vec<_> = report["runs"].as_array().unwrap().iter().map(|run| run["round"].clone()).collect();
    assert_eq!(rounds, [1, 2]);
    assert_eq!(report["runs"][0]["side"], "ours");
    assert_eq!(report["rows"][0]["judgement"], "no-peer");
    let bytes = report["rows"][0]["ours"]["live_bytes_per_op"]["median"].as_f64().unwrap();
    assert!(bytes >= 16.0, "a queued key takes at least its two words, not {bytes} bytes");
}

#[test]
fn wrong_usage_and_an_unwritable_report_end_with_exit_code_two_and_say_what_to_do() {
    let unwritable = format!("{}/no/such/directory/report.json", env!("CARGO_TARGET_TMPDIR"));
    let cases: [(&[&str], &str); 3] = [
        (&["queue", "--only", "nosuchrow"], "lockstep"),
        (&["run-one", "queue", "nosuchrow", "1"], "`list` prints their names"),
        (&["queue", "--no-peer", "--only", "lockstep", "--json", &unwritable], "choose another file"),
    ];
    for (arguments, hint) in cases {
        let output = bench(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(hint), "{arguments:?} does not say {hint:?}: {stderr}");
    }
}

#[test]
fn without_go_the_suite_reports_it_and_runs_without_the_peer() {
    let nothing = concat!(env!("CARGO_TARGET_TMPDIR"), "/a-path-without-programs");
    std::fs::create_dir_all(nothing).unwrap();
    let output = program(&["queue", "--rounds", "1", "--operations", "50", "--only", "lockstep"])
        .env("PATH", nothing)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("go is not on PATH; ours runs alone, without client-go\n"), "{stderr}");
    assert!(stdout(&output).ends_with("ratio queue/lockstep n/a target >=1.00x no-peer\n"));
}

#[test]
fn a_peer_that_does_not_build_is_an_error_with_the_compilers_words() {
    let output = program(&["queue", "--rounds", "1", "--operations", "50", "--only", "lockstep"])
        .env("PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/broken-toolchain"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("./queue.go:1:1: syntax error"), "{stderr}");
    assert!(stderr.contains("`--no-peer` runs ours alone"), "{stderr}");
}

#[test]
fn list_names_every_row_with_its_target() {
    let output = bench(&["list"]);
    assert!(output.status.success());
    let text = stdout(&output);
    assert!(text.starts_with("queue: "), "{text}");
    for row in ["lockstep", "memory-delayed", "lateness"] {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(row) && line.contains('=')),
            "{row}: {text}"
        );
    }
}
