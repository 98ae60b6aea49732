//! The `decode` suite as a user runs it, on loads small enough for a debug build.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench"));
    command.args(["decode", "--rounds", "1", "--operations", "20"]).args(arguments);
    command
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter(|line| line.starts_with("ratio ")).map(str::to_owned).collect()
}

#[test]
fn both_sides_decode_everything_and_are_compared() {
    let output =
        bench(&["--only", "list,watch,narrow,list-memory"]).output().expect("it was built for this test");
    // In a debug build it does not matter whether the targets are met.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&output);
    let names: Vec<_> = lines.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(names, ["decode/list", "decode/watch", "decode/narrow", "decode/list-memory"]);
    assert!(lines.iter().all(|line| !line.ends_with("no-peer")), "{lines:?}");
    assert!(lines[3].ends_with("MB target <=2.00MB ok"), "{lines:?}");
}

#[test]
fn without_valgrind_the_rows_that_count_say_so_and_are_not_judged() {
    let output = bench(&["--only", "list-instructions"])
        .env("PATH", "/nonexistent")
        .output()
        .expect("it was built for this test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("valgrind is not on PATH, so instructions cannot be counted"), "{said}");
    assert_eq!(lines(&output), ["ratio decode/list-instructions n/a target <=0.66x no-peer"]);
}
