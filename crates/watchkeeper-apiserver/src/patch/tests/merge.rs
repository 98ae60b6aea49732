use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::object;
use crate::patch::{Patch, PatchFormat, merge};

#[test]
fn members_are_merged_and_null_removes_them() {
    let cases = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        (json!({"a": null}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}})),
        (json!({}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {}]})),
        (json!({"a": {}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
    ];
    for (before, patch, after) in cases {
        assert_eq!(merge(&before, patch.clone()), after, "{before} with {patch}");
    }
}

#[test]
fn merge_patches_that_are_not_objects_are_bad_requests() {
    for form in [PatchFormat::Merge, PatchFormat::Strategic] {
        for body in [json!([]), json!(1), json!(null), json!("x")] {
            assert_eq!(Patch::read(form, body.clone()).unwrap_err().code, 400, "{form:?} {body}");
        }
    }
}

/// Returns the patch that changes `before` to `after`.
fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Value {
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, after) in after {
        match (before.get(name), after) {
            (Some(before), after) if before == after => {}
            (Some(Value::Object(before)), Value::Object(after)) => {
                patch.insert(name.clone(), difference(before, after));
            }
            _ => {
                patch.insert(name.clone(), after.clone());
            }
        }
    }
    Value::Object(patch)
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name, without_nulls(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn without_nulls_in_lists(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, without_nulls_in_lists(member))).collect()
        }
        other => without_nulls(other),
    }
}

proptest! {
    #[test]
    fn applying_a_diff_to_the_first_object_yields_the_second(before in object(), after in object()) {
        let (before, after) = (without_nulls(before), without_nulls(after));
        let patch = difference(before.as_object().unwrap(), after.as_object().unwrap());
        prop_assert_eq!(merge(&before, patch), after);
    }

    #[test]
    fn merging_is_idempotent(before in object(), patch in object()) {
        let patch = without_nulls_in_lists(patch);
        let once = merge(&before, patch.clone());
        prop_assert_eq!(merge(&once, patch), once);
    }
}
