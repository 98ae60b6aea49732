use proptest::prelude::*;
use serde_json::{Value, json};

use super::object;
use crate::patch::{
    JsonPatch,
    json::{MAX_DEPTH, MAX_OPERATIONS},
};

fn patched(object: &Value, patch: &Value) -> Result<Value, u16> {
    JsonPatch::read(patch.clone()).and_then(|patch| patch.apply(object)).map_err(|error| error.code)
}

#[test]
fn each_json_patch_operation_changes_the_document() {
    let object = json!({"a": {"b": [1, 2, 3]}, "s/t": {"~": 1}});
    let cases = [
        (json!([{"op": "add", "path": "/a/c", "value": 1}]), json!({"a": {"b": [1, 2, 3], "c": 1}})),
        (json!([{"op": "add", "path": "/a/b/1", "value": 9}]), json!({"a": {"b": [1, 9, 2, 3]}})),
        (json!([{"op": "add", "path": "/a/b/-", "value": 9}]), json!({"a": {"b": [1, 2, 3, 9]}})),
        (json!([{"op": "add", "path": "/a/b/3", "value": 9}]), json!({"a": {"b": [1, 2, 3, 9]}})),
        (json!([{"op": "add", "path": "/a/b/-1", "value": 9}]), json!({"a": {"b": [1, 2, 3, 9]}})),
        (json!([{"op": "add", "path": "/a/b", "value": null}]), json!({"a": {"b": null}})),
        (json!([{"op": "remove", "path": "/a/b/0"}]), json!({"a": {"b": [2, 3]}})),
        (json!([{"op": "remove", "path": "/a/b/-1"}]), json!({"a": {"b": [1, 2]}})),
        (json!([{"op": "remove", "path": "/a"}]), json!({})),
        (json!([{"op": "replace", "path": "/a/b/2", "value": 9}]), json!({"a": {"b": [1, 2, 9]}})),
        (
            json!([{"op": "replace", "path": "/a/missing", "value": 9}]),
            json!({"a": {"b": [1, 2, 3], "missing": 9}}),
        ),
        (json!([{"op": "move", "from": "/a/b", "path": "/c"}]), json!({"a": {}, "c": [1, 2, 3]})),
        (
            json!([{"op": "copy", "from": "/a/b", "path": "/a/c"}]),
            json!({"a": {"b": [1, 2, 3], "c": [1, 2, 3]}}),
        ),
        (json!([{"op": "copy", "from": "/a/missing", "path": "/a/b"}]), json!({"a": {"b": null}})),
        (json!([{"op": "test", "path": "/a/b/0", "value": 1}, {"op": "remove", "path": "/a"}]), json!({})),
        (json!([{"op": "test", "path": "/missing"}]), json!({"a": {"b": [1, 2, 3]}})),
        (json!([{"op": "test", "path": "", "value": object}]), json!({"a": {"b": [1, 2, 3]}})),
        (json!([{"op": "test", "path": "/s~1t/~0", "value": 1}]), json!({"a": {"b": [1, 2, 3]}})),
        (json!([]), json!({"a": {"b": [1, 2, 3]}})),
        (json!(null), json!({"a": {"b": [1, 2, 3]}})),
    ];
    for (patch, mut expected) in cases {
        expected["s/t"] = json!({"~": 1});
        assert_eq!(patched(&object, &patch), Ok(expected), "{patch}");
    }
    let all = json!([{"op": "replace", "path": "", "value": {"n": 1}}]);
    assert_eq!(patched(&object, &all), Ok(json!({"n": 1})));
}

#[test]
fn inapplicable_operations_are_unprocessable() {
    let object = json!({"a": {"b": [1, 2, 3], "n": null}, "s": "text"});
    for operation in [
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "/s/y", "value": 1}),
        json!({"op": "add", "path": "/a/n/y", "value": 1}),
        json!({"op": "add", "path": "/a/b/4", "value": 1}),
        json!({"op": "add", "path": "/a/b/x", "value": 1}),
        json!({"op": "add", "path": "/a/b/-5", "value": 1}),
        json!({"op": "add", "value": 1}),
        json!({"op": "remove", "path": "/missing"}),
        json!({"op": "remove", "path": "/a/b/3"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "replace", "path": "/a/b/3", "value": 1}),
        json!({"op": "replace", "path": "/a/b/-", "value": 1}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "replace", "path": "/x/y", "value": 1}),
        json!({"op": "move", "path": "/x", "from": "/missing"}),
        json!({"op": "move", "path": "/a/b/x", "from": "/a"}),
        json!({"op": "move", "path": "/x"}),
        json!({"op": "copy", "path": "/x", "from": "/a/b/7"}),
        json!({"op": "copy", "path": "/x", "from": ""}),
        json!({"op": "test", "path": "/a/b/0", "value": 2}),
        json!({"op": "test", "path": "/a/b/0", "value": 1.0}),
        json!({"op": "test", "path": "/a/b/9", "value": null}),
        json!({"op": "test", "path": "/missing", "value": 1}),
        json!({"op": "test", "path": "/s"}),
        json!({"op": "jump", "path": "/s"}),
        json!({"path": "/s"}),
        json!({}),
        json!(null),
    ] {
        assert_eq!(patched(&object, &json!([operation])), Err(422), "{operation}");
    }
    let patch = JsonPatch::read(json!([{"op": "remove", "path": "/x"}])).unwrap();
    let status = patch.apply(&object).unwrap_err().to_status();
    assert_eq!((&status["reason"], &status["details"]), (&json!("Invalid"), &json!({})));
}

#[test]
fn invalid_json_patches_are_bad_requests() {
    for body in [
        json!({}),
        json!(1),
        json!([1]),
        json!(["add"]),
        json!([{"op": 1, "path": "/a"}]),
        json!([{"op": "add", "path": ["a"]}]),
        json!([{"op": "copy", "path": "/a", "from": {}}]),
    ] {
        assert_eq!(patched(&json!({}), &body), Err(400), "{body}");
    }
}

#[test]
fn unknown_operation_fields_are_reported_by_strict_validation() {
    let operations = json!([
        {"op": "add", "path": "/a", "value": 1},
        {"op": "test", "path": "/a", "extra": 1, "Op": 2},
    ]);
    let patch = JsonPatch::read(operations).unwrap();
    assert_eq!(
        patch.unknown_fields(),
        ["json patch unknown field \"[1].Op\"", "json patch unknown field \"[1].extra\""]
    );
}

#[test]
fn the_number_of_operations_is_limited() {
    let patch = |count| Value::Array(vec![json!({"op": "test", "path": "/a", "value": 1}); count]);
    assert_eq!(patched(&json!({"a": 1}), &patch(MAX_OPERATIONS)), Ok(json!({"a": 1})));
    assert_eq!(patched(&json!({"a": 1}), &patch(MAX_OPERATIONS + 1)), Err(413));
}

#[test]
fn the_growth_caused_by_copy_operations_is_limited() {
    let copies = (0..64).flat_map(|_| {
        [
            json!({"op": "copy", "from": "/a", "path": "/a/-"}),
            json!({"op": "copy", "from": "/a", "path": "/a/-"}),
        ]
    });
    assert_eq!(patched(&json!({"a": ["0123456789"]}), &copies.collect()), Err(422));
}

#[test]
fn a_patch_cannot_exceed_the_nesting_limit() {
    let deep = "/a".repeat(50);
    let nested: Value =
        serde_json::from_str(&format!("{}1{}", "{\"a\":".repeat(50), "}".repeat(50))).unwrap();
    let once = json!([{"op": "add", "path": deep, "value": nested}]);
    let object = patched(&nested, &once).unwrap();
    assert_eq!(object.pointer(&"/a".repeat(100)), Some(&json!(1)));
    let twice = json!([{"op": "copy", "from": "/a", "path": "/a".repeat(MAX_DEPTH - 20)}]);
    assert_eq!(patched(&object, &twice), Err(422));
    let moved = json!([
        {"op": "add", "path": "/b", "value": nested},
        {"op": "move", "from": "/b", "path": "/a".repeat(100)},
    ]);
    assert_eq!(patched(&object, &moved), Err(422));
}

fn operation() -> impl Strategy<Value = Value> {
    let pointer =
        proptest::collection::vec("[abc012-]", 1..4).prop_map(|tokens| format!("/{}", tokens.join("/")));
    let op =
        prop_oneof![Just("add"), Just("remove"), Just("replace"), Just("move"), Just("copy"), Just("test")];
    (op, pointer.clone(), pointer, object())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
}

proptest! {
    /// Operations that the RFC permits behave as the RFC defines.
    #[test]
    fn operations_valid_in_rfc_6902_have_its_result(object in object(), operations in proptest::collection::vec(operation(), 1..4)) {
        let patch: json_patch::Patch = serde_json::from_value(Value::Array(operations.clone())).unwrap();
        let mut expected = object.clone();
        // Without the crate's rollback, which panics when a rejected patch moved a value into itself.
        if json_patch::patch_unsafe(&mut expected, &patch).is_ok() {
            prop_assert_eq!(patched(&object, &Value::Array(operations)), Ok(expected));
        }
    }

    #[test]
    fn arbitrary_operations_do_not_panic(object in object(), patch in object()) {
        let _ = patched(&object, &json!([patch.clone()]));
        let _ = patched(&object, &json!([{"op": "add", "path": "/a", "value": patch}]));
    }
}
