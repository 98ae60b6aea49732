use serde_json::{Value, json};

use super::{FieldCondition, Rule, RuleTable, check, check_change};
use crate::strategy::{
    cursor::{Cursor, Errors},
    names,
};

const ITEM: RuleTable = &[
    ("name", &[Rule::Required, Rule::Format(names::dns_label)]),
    ("port", &[Rule::PortOrName]),
    ("mode", &[Rule::OneOf(&["A", "B"])]),
];

const OBJECT: RuleTable = &[
    ("spec.count", &[Rule::AtLeast(0), Rule::Immutable]),
    ("spec.share", &[Rule::InRange(1, 100)]),
    ("spec.kind", &[Rule::Enum(&["One", "Two"])]),
    ("spec.items", &[Rule::UniqueBy("name"), Rule::MaxItems(2)]),
    ("spec.items[]", &[Rule::Struct(ITEM)]),
    ("spec.amounts{}", &[Rule::QuantityAtLeastZero]),
    ("spec.nested", &[Rule::Pointer(ITEM)]),
    ("spec", &[Rule::When(FieldCondition::Is("kind", "Two"), &[("extra", &[Rule::Absent("not for Two")])])]),
];

fn good() -> Value {
    json!({"spec": {"share": 5, "kind": "One", "items": [{"name": "a", "port": 80}, {"name": "b", "port": "http"}]}})
}

fn found(errors: Errors) -> Vec<String> {
    errors
        .into_iter()
        .map(|error| format!("{} {}", error.path, error.kind.reason().trim_start_matches("FieldValue")))
        .collect()
}

#[test]
fn violations_are_reported_with_field_paths_in_table_order() {
    let table: &[(&str, Value, &[&str])] = &[
        ("/spec/count", json!(-1), &["spec.count Invalid"]),
        ("/spec/share", json!(0), &["spec.share Invalid"]),
        ("/spec/share", Value::Null, &["spec.share Invalid"]),
        ("/spec/kind", json!(""), &["spec.kind NotSupported"]),
        ("/spec/items/0/name", json!(""), &["spec.items[0].name Required"]),
        ("/spec/items/0/name", json!("A"), &["spec.items[0].name Invalid"]),
        ("/spec/items/1/name", json!("a"), &["spec.items[1].name Duplicate"]),
        ("/spec/items/1/port", json!("-"), &["spec.items[1].port Invalid"; 2]),
        ("/spec/items/1/port", json!(0), &["spec.items[1].port Invalid"]),
        ("/spec/items/1/mode", json!("C"), &["spec.items[1].mode NotSupported"]),
        ("/spec/amounts", json!({"cpu": "-1"}), &["spec.amounts[cpu] Invalid"]),
        ("/spec/nested", json!({}), &["spec.nested.name Required", "spec.nested.port Invalid"]),
        (
            "/spec/items",
            json!([{"port": 1}, {"name": "a", "port": 1}, {"name": "a", "port": 0}]),
            &[
                "spec.items[2].name Duplicate",
                "spec.items TooMany",
                "spec.items[0].name Required",
                "spec.items[2].port Invalid",
            ],
        ),
    ];
    for (pointer, value, expected) in table {
        let mut object = good();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        match object.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[member.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[member] = value.clone(),
        }
        let mut errors = Errors::new();
        check(OBJECT, &Cursor::root(&object), &mut errors);
        assert_eq!(found(errors), *expected, "{pointer} = {value}");
    }
}

#[test]
fn a_valid_object_violates_no_rule() {
    let object = good();
    let mut errors = Errors::new();
    check(OBJECT, &Cursor::root(&object), &mut errors);
    assert_eq!(errors, []);
}

#[test]
fn conditional_rules_apply_only_where_their_condition_holds() {
    let mut object = good();
    object["spec"]["extra"] = json!({});
    let mut errors = Errors::new();
    check(OBJECT, &Cursor::root(&object), &mut errors);
    assert_eq!(errors, []);
    object["spec"]["kind"] = json!("Two");
    check(OBJECT, &Cursor::root(&object), &mut errors);
    assert_eq!(found(errors), ["spec.extra Forbidden"]);
}

#[test]
fn immutability_rules_apply_only_to_updates() {
    let (mut old, mut new) = (good(), good());
    old["spec"]["count"] = json!(1);
    new["spec"]["count"] = json!(2);
    let mut errors = Errors::new();
    check(OBJECT, &Cursor::root(&new), &mut errors);
    assert_eq!(errors, []);
    check_change(OBJECT, &Cursor::root(&new), &Cursor::root(&old), &mut errors);
    assert_eq!(found(errors), ["spec.count Invalid"]);
}
