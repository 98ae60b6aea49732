//! The `store` suite.

use crate::{measured, rows};

#[test]
fn every_row_of_the_store_suite_runs_with_and_without_the_peer_in_this_program() {
    let tiny = ["store", "--rounds", "1", "--operations", "20"];
    let text = measured(&[&tiny[..], &["--no-peer"]].concat());
    assert_eq!(rows(&text).len(), 12, "{text}");

    let text = measured(&[&tiny[..], &["--only", "by-index-or-scan"]].concat());
    assert!(text.contains("kube-rs"), "{text}");
}
