//! Validation of custom resources takes linear time.

use serde_json::{Value, json};

use super::{
    prune::{lacks_defaults, set_defaults},
    structural::Structural,
    validate::{list_types, validate},
};
use crate::complexity::assert_linear;

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("k{number:07}"))
}

fn lists(schema: &Structural, value: &Value) -> usize {
    let mut errors = Vec::new();
    list_types(value, schema, "l", &mut errors);
    errors.len()
}

#[test]
fn duplicate_set_and_map_items_are_found_in_linear_time() {
    let set = Structural::read(
        &json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
    );
    let map = Structural::read(
        &json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "p": {"type": "integer"}}}}),
    );
    let texts = |count| numbered(count).collect::<Value>();
    let objects = |count| numbered(count).map(|key| json!({"k": key, "p": 1})).collect::<Value>();
    assert_linear("a set", 4_000, texts, |value| lists(&set, value));
    assert_linear("a map", 4_000, objects, |value| lists(&map, value));
    assert_linear("a map that changes", 2_000, objects, |value| {
        let mut old = value.clone();
        old.as_array_mut().unwrap().reverse();
        validate(value, Some(&old), &map, "")
    });
}

#[test]
fn enum_values_are_found_without_comparing_each_allowed_value() {
    let schema = |count| {
        let allowed: Vec<String> = numbered(count).collect();
        json!({"type": "array", "items": {"type": "string", "enum": allowed}})
    };
    assert_linear(
        "an enum",
        2_000,
        |count| {
            (
                Structural::read(&schema(count)),
                numbered(count).map(|key| format!("x{key}")).collect::<Value>(),
            )
        },
        |(schema, value)| validate(value, None, schema, ""),
    );
}

#[test]
fn validation_of_alternatives_times_items_has_a_step_limit() {
    let alternatives: Vec<Value> = numbered(2_000).map(|key| json!({"required": [key]})).collect();
    let schema = Structural::read(
        &json!({"type": "array", "items": {"type": "object", "additionalProperties": true, "anyOf": alternatives}}),
    );
    let value = numbered(50_000).map(|_| json!({"k0001999": 1})).collect::<Value>();
    let errors = validate(&value, None, &schema, "");
    assert!(
        errors.last().is_some_and(|error| error.detail.contains("validation was stopped")),
        "{}",
        errors.len()
    );
    assert_eq!(validate(&json!([{"k0000001": 1}]), None, &schema, ""), []);
}

#[test]
fn matching_a_large_pattern_on_a_long_string_has_a_step_limit() {
    let schema = Structural::read(&json!({"type": "string", "pattern": r"(\pL{0,5}x){4}$"}));
    let errors = validate(&json!("a".repeat(3_000_000)), None, &schema, "");
    assert!(errors.last().is_some_and(|error| error.detail.contains("validation was stopped")), "{errors:?}");
}

#[test]
fn an_object_reports_a_bounded_number_of_errors() {
    let schema = Structural::read(&json!({"type": "object", "properties": {
        "l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 2}}}}));
    let twice = numbered(4_000).chain(numbered(4_000));
    let value = json!({"l": twice.collect::<Value>()});
    assert_eq!(validate(&value, None, &schema, "").len(), 1_000);
    assert_eq!(lists(&schema, &value), 1_000);
}

#[test]
fn a_value_that_occurs_many_times_in_a_set_is_reported_once() {
    let schema = Structural::read(&json!({"type": "array", "x-kubernetes-list-type": "set"}));
    let mut errors = Vec::new();
    list_types(&json!(["a", "b", "a", "a", "a"]), &schema, "l", &mut errors);
    assert_eq!(errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), ["l[2]"]);
}

#[test]
fn a_large_default_of_many_items_is_refused() {
    let schema = Structural::read(&json!({"type": "array", "items": {"type": "object", "properties": {
        "d": {"type": "string", "default": "x".repeat(100_000)}}}}));
    let mut few = (0..10).map(|_| json!({})).collect::<Value>();
    set_defaults(&mut few, &schema);
    assert!(!lacks_defaults(&few, &schema) && few[9]["d"].is_string());
    let mut many = (0..10_000).map(|_| json!({})).collect::<Value>();
    set_defaults(&mut many, &schema);
    assert!(lacks_defaults(&many, &schema) && many[9_999]["d"].is_null());
}
