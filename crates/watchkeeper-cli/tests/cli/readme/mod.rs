//! The README: its transcript is the output of the program, and its code is compiled and run.

#[expect(dead_code, reason = "the main function of the operator runs on a cluster")]
mod operator;

use crate::support::run;

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap()
}

#[test]
fn the_code_in_the_readme_is_the_code_of_this_test() {
    let (readme, code) = (readme(), include_str!("operator.rs"));
    let blocks = readme.split("```rust\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), 2, "the operator and its test");
    for block in blocks {
        assert!(code.contains(block), "not in operator.rs:\n{block}");
    }
}

/// Removes the parts that vary between runs: times, and the counts of reconciles, events and watches.
fn normalised(text: &str) -> Vec<String> {
    text.trim().lines().map(|line| normalised_line(line.trim_end())).collect()
}

fn normalised_line(line: &str) -> String {
    let varies = ["  reconciles ", "  events ", "  watches "].iter().any(|start| line.starts_with(start));
    let words = line.split(' ').map(|word| {
        let is_time = word.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok());
        let is_count = varies && word.trim_end_matches(',').parse::<u64>().is_ok();
        if is_time || is_count { "#" } else { word }
    });
    // Numbers of a different width change only the surrounding spaces.
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn the_transcript_in_the_readme_is_what_the_program_prints() {
    let readme = readme();
    let (_, after) = readme.split_once("```console\n$ cargo run\n").expect("the README has a transcript");
    let (transcript, _) = after.split_once("```").unwrap();
    // Without a command, as in the README.
    let ended = run(&[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(normalised(transcript), normalised(&ended.out), "as printed:\n{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'), "escape sequences without a terminal");
}

#[test]
fn only_times_and_varying_counts_are_ignored() {
    assert_eq!(normalised_line("   0.02s  you         create Foo red"), "# you create Foo red");
    assert_eq!(normalised_line("  reconciles   24, 2 failed"), "reconciles # # failed");
    assert_eq!(normalised_line("  Foos         2"), "Foos 2");
}
