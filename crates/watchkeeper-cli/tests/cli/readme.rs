//! The transcript in the README matches the output of the program.

use crate::support::run;

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
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, after) = readme.split_once("```console\n$ cargo run\n").expect("the README has a transcript");
    let (transcript, _) = after.split_once("```").unwrap();
    // Without a command, as in the README.
    let ended = run(&[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(normalised(transcript), normalised(&ended.out), "as printed:\n{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'), "colours where no terminal is");
}

#[test]
fn only_what_is_said_to_vary_is_ignored() {
    assert_eq!(normalised_line("   0.02s  you         create Foo red"), "# you create Foo red");
    assert_eq!(normalised_line("  reconciles   24, of which 2 failed"), "reconciles # of which # failed");
    assert_eq!(normalised_line("  foos         2"), "foos 2");
}
