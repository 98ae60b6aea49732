//! Patches by example and by property.

mod json;
mod merge;
mod strategic;

use proptest::prelude::*;
use serde_json::{Value, json};

/// Generates small JSON objects with frequently equal names and values.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("s")), Just(json!(true)), Just(json!(null))];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::btree_map("[abc]", inner.clone(), 0..4).prop_map(|members| json!(members)),
            proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    });
    proptest::collection::btree_map("[abc]", value, 0..4).prop_map(|members| json!(members))
}
