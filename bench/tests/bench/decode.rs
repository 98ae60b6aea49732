//! The `decode` suite.

use crate::{compared, measured, program, rows, stdout};

const TINY: [&str; 5] = ["decode", "--rounds", "1", "--operations", "20"];

#[test]
fn both_sides_decode_everything_and_are_compared() {
    let text = measured(&[&TINY[..], &["--only", "list,watch,narrow,list-memory"]].concat());
    assert_eq!(rows(&text), ["decode/list", "decode/watch", "decode/narrow", "decode/list-memory"]);
    assert_eq!(compared(&text), 4, "{text}");
    let memory = text.lines().find(|line| line.starts_with("ratio decode/list-memory "));
    assert!(memory.is_some_and(|line| line.ends_with("MB target <=2.00MB ok")), "{text}");
}

#[test]
fn without_valgrind_the_rows_that_count_say_so_and_are_not_judged() {
    let output = program(&[&TINY[..], &["--only", "list-instructions"]].concat())
        .env("PATH", "/nonexistent")
        .output()
        .expect("the program was built for this test");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("valgrind is not on PATH, so instructions cannot be counted"), "{stderr}");
    let text = stdout(&output);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("ratio ")).collect();
    assert_eq!(lines, ["ratio decode/list-instructions n/a target <=0.66x no-peer"]);
}
