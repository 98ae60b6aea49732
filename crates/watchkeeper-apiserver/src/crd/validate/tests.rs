//! Each keyword, and values that did not change.

use serde_json::{Value, json};

use super::{Structural, list_types, validate};

fn wrong(properties: &Value, spec: &Value) -> Vec<(String, &'static str)> {
    let schema = Structural::read(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
    );
    let object = json!({"spec": spec});
    let mut errors = validate(&object, None, &schema, "");
    list_types(&object, &schema, "", &mut errors);
    let mut found: Vec<_> = errors.into_iter().map(|error| (error.path, error.kind.reason())).collect();
    found.sort_unstable();
    found
}

#[test]
fn each_schema_keyword_reports_its_violations() {
    const INVALID: &str = "FieldValueInvalid";
    const KIND: &str = "FieldValueTypeInvalid";
    const MISSING: &str = "FieldValueRequired";
    type Row = (Value, Value, &'static [(&'static str, &'static str)]);
    let table: &[Row] = &[
        (json!({"type": "string", "minLength": 2}), json!("A"), &[("spec.x", INVALID)]),
        (
            json!({"type": "string", "maxLength": 2, "pattern": "^z"}),
            json!("abc"),
            &[("spec.x", "FieldValueTooLong")],
        ),
        (json!({"type": "string", "pattern": "^z"}), json!("abc"), &[("spec.x", INVALID)]),
        (json!({"type": "string", "pattern": "^a"}), json!("abc"), &[]),
        (json!({"type": "integer", "multipleOf": 2}), json!(3), &[("spec.x", INVALID)]),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!(1.5),
            &[("<nil>", INVALID), ("spec.x", INVALID), ("spec.x", KIND)],
        ),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), &[]),
        (json!({"type": "integer"}), json!("1"), &[("spec.x", KIND)]),
        (json!({"type": "integer"}), json!(2.0), &[]),
        (json!({"type": "integer", "format": "int32"}), json!(3_000_000_000_i64), &[("<nil>", INVALID)]),
        (
            json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
            json!(3),
            &[("spec.x", INVALID)],
        ),
        (json!({"type": "integer", "minimum": 3}), json!(3), &[]),
        (json!({"type": "string", "enum": ["A"]}), json!("B"), &[("spec.x", "FieldValueNotSupported")]),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            json!([]),
            &[("spec.x", INVALID)],
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", 2]),
            &[("spec.x", "FieldValueTooMany"), ("spec.x[1]", KIND)],
        ),
        (json!({"type": "object", "required": ["y"]}), json!({}), &[("spec.x.y", MISSING)]),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"k": "x"}),
            &[("spec.x.k", KIND)],
        ),
        (json!({"x-kubernetes-int-or-string": true}), json!(true), &[("spec.x", KIND)]),
        (json!({"x-kubernetes-int-or-string": true}), json!("5%"), &[]),
        (json!({"type": "string", "format": "ipv4"}), json!("x"), &[("spec.x", KIND)]),
        (json!({"type": "string", "nullable": true}), json!(null), &[]),
        (json!({"type": "string"}), json!(null), &[("spec.x", KIND)]),
        (
            json!({"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "b$"}]}),
            json!("ab"),
            &[("<nil>", INVALID)],
        ),
        (
            json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "b$"}]}),
            json!("x"),
            &[("<nil>", INVALID), ("spec.x", INVALID)],
        ),
        (json!({"type": "string", "not": {"pattern": "^a"}}), json!("ab"), &[("<nil>", INVALID)]),
        (json!({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}), json!("ab"), &[]),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["a", "a"]),
            &[("spec.x[1]", "FieldValueDuplicate")],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
            json!([{"k": "a"}, {"k": "b"}, {"k": "a"}]),
            &[("spec.x[2]", "FieldValueDuplicate")],
        ),
    ];
    for (schema, value, expected) in table {
        let expected: Vec<(String, &str)> =
            expected.iter().map(|(path, reason)| ((*path).to_owned(), *reason)).collect();
        assert_eq!(wrong(&json!({"x": schema}), &json!({"x": value})), expected, "{schema} {value}");
    }
}

#[test]
fn unchanged_values_are_accepted_under_a_stricter_schema() {
    let schema = Structural::read(&json!({"type": "object", "properties": {
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "minimum": 5}}}}}}));
    let old = json!({"l": [{"k": "a", "n": 1}, {"k": "b", "n": 9}]});
    let moved = json!({"l": [{"k": "b", "n": 8}, {"k": "a", "n": 1}]});
    assert_eq!(validate(&moved, Some(&old), &schema, ""), []);
    let worse = json!({"l": [{"k": "a", "n": 2}]});
    assert_eq!(validate(&worse, Some(&old), &schema, "")[0].path, "l[0].n");
}
