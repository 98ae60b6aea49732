//! The `controller` suite.

use crate::{compared, measured};

#[test]
fn both_sides_reconcile_every_key_and_are_compared() {
    let text = measured(&["controller", "--rounds", "1", "--operations", "300"]);
    assert_eq!(compared(&text), 2, "{text}");
}
