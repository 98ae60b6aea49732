//! The output of the example.

use std::process::Command;

#[test]
fn the_example_prints_the_pods_of_the_list_and_what_became_of_them() {
    // Through cargo, because a test may be built without the examples.
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--example", "informer_workqueue"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let expected = [
        "synced: 2 pods, 1 of them on node-1",
        "pod shop/web-0 is on node-1 (initial list)",
        "pod shop/web-1 is on node-2 (initial list)",
        r#"at version 13: ["shop/web-2"] on node-1"#,
        "pod shop/web-2 is on node-1 (event of Pod)",
        "pod shop/web-0 is on node-2 (event of Pod)",
        "pod shop/web-1 does not exist any more (event of Pod)",
        "shut down: no watch, no handler and no task is left",
    ];
    assert_eq!(lines[..lines.len().min(8)], expected, "{}", String::from_utf8_lossy(&output.stderr));
}
