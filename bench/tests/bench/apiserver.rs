//! The `apiserver` suite.

use crate::{measured, rows};

#[test]
fn every_row_ends_with_every_write_delivered_and_every_pod_listed() {
    let names = ["create", "update", "create-large", "update-large", "watchers", "paging", "memory"];
    // More than one page.
    let text = measured(&["apiserver", "--rounds", "1", "--only", &names.join(","), "--operations", "600"]);
    assert_eq!(rows(&text), names.map(|name| format!("apiserver/{name}")));
    let text = measured(&["apiserver", "--rounds", "1", "--only", "start", "--operations", "1"]);
    assert_eq!(rows(&text), ["apiserver/start"]);
}
