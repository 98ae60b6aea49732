//! Validation of the schema of a custom resource, which must be structural so that objects can be pruned, defaulted and
//! applied.

mod rules;
mod structure;

use std::collections::HashSet;

use serde_json::Value;

use self::rules::{SchemaPosition, Totals};
use super::{
    prune::{META, prune_object, set_defaults},
    structural::{JsonType, Structural},
    validate,
};
use crate::{
    field::MAX_ERRORS,
    strategy::{Cursor, Errors},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The properties that a schema inherits from the enclosing schemas.
#[derive(Clone)]
struct Inherited {
    is_metadata: bool,
    forbids_defaults: Option<String>,
    /// The path of the schema below which values have no old value, if any.
    uncorrelatable: Option<String>,
    /// The maximum number of occurrences of a value in an object; none if an enclosing list or map is unlimited.
    cardinality: Option<u64>,
    /// Whether the enclosing schemas are valid, so that rules can be checked.
    checks_rules: bool,
}

/// Validates the schema of a version.
pub(crate) fn check(schema: &Cursor<'_>, has_status: bool, errors: &mut Errors) {
    if schema.at("nullable").is_true() {
        errors.push(schema.at("nullable").forbidden("nullable cannot be true at the root"));
    }
    let kind = schema.at("type");
    if has_status && !kind.is_empty() && kind.text() != "object" {
        errors.push(kind.invalid("only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled"));
    }
    if rules::text_bytes(schema.value) > rules::TEXT_BYTES {
        let detail =
            format!("x-kubernetes-validations must not have more than {} bytes of rules", rules::TEXT_BYTES);
        errors.push(schema.forbidden(detail));
        return;
    }
    let before = errors.len();
    structure::check(schema, errors);
    let mut is_sound = errors.len() == before;
    if is_sound {
        let whole = Structural::read(schema.value);
        defaults(schema, &whole, true, false, errors);
        is_sound = errors.len() == before;
    }
    let inherited = Inherited {
        is_metadata: false,
        forbids_defaults: None,
        uncorrelatable: None,
        cardinality: Some(1),
        checks_rules: is_sound,
    };
    let mut totals = Totals::default();
    keywords(schema, true, &inherited, errors, &mut totals);
    totals.finish(schema, errors);
}

/// Validates a default, which must be valid by its schema and must not be pruned.
fn defaults(at: &Cursor<'_>, schema: &Structural, is_root: bool, is_metadata: bool, errors: &mut Errors) {
    if let Some(default) = &schema.default
        && !is_metadata
    {
        let place = at.at("default");
        let mut pruned = default.clone();
        prune_value(&mut pruned, schema);
        if pruned == *default {
            let mut completed = default.clone();
            set_defaults(&mut completed, schema);
            errors.extend(validate::validate(&completed, None, schema, &place.path()));
            let mut listed = Vec::new();
            validate::list_types(&completed, schema, &place.path(), &mut listed);
            errors.extend(listed);
        } else {
            errors.push(place.invalid("must not have unknown fields"));
        }
    }
    let properties = at.at("properties");
    for (name, property) in &schema.properties {
        let below_metadata = is_metadata || (is_root && META.contains(&name.as_str()));
        defaults(&properties.key(name), property, false, below_metadata, errors);
    }
    if let Some(items) = &schema.items {
        defaults(&at.at("items"), items, false, is_metadata, errors);
    }
    if let super::structural::Additional::Of(of) = &schema.additional {
        defaults(&at.at("additionalProperties"), of, false, is_metadata, errors);
    }
}

fn prune_value(value: &mut Value, schema: &Structural) {
    // Pruning starts at objects, so there is nothing to prune in a default of another type.
    if value.is_object() && !schema.is_embedded && schema.ty == Some(JsonType::Object) {
        let kept = META.map(|name| value.get(name).cloned());
        prune_object(value, schema);
        for (name, before) in META.iter().zip(kept) {
            if before.is_some()
                && schema.member(name).is_none()
                && !schema.keeps_unknown
                && let Some(members) = value.as_object_mut()
            {
                members.remove(*name);
            }
        }
    }
}

/// Reports keywords that are unsupported, alone or in combination.
fn keywords(
    schema: &Cursor<'_>,
    is_root: bool,
    inherited: &Inherited,
    errors: &mut Errors,
    totals: &mut Totals,
) {
    const UNSUPPORTED: [&str; 6] =
        ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
    let before = errors.len();
    let kind = schema.at("type");
    if !kind.is_empty() && !TYPES.contains(&kind.text()) {
        errors.push(kind.unsupported(&TYPES));
    }
    if kind.text() == "null" {
        errors.push(kind.forbidden("type cannot be set to null, use nullable as an alternative"));
    }
    if let (Some(reason), true) = (&inherited.forbids_defaults, schema.at("default").is_set()) {
        errors.push(schema.at("default").forbidden(format!("must not be set {reason}")));
    }
    for keyword in UNSUPPORTED {
        if !schema.at(keyword).is_empty() {
            errors.push(schema.at(keyword).forbidden(format!("{keyword} is not supported")));
        }
    }
    if schema.at("items").value.is_array() {
        errors.push(schema.at("items").forbidden("items must be a schema object and not an array"));
    }
    if inherited.is_metadata && schema.at("x-kubernetes-embedded-resource").is_true() {
        errors.push(
            schema.at("x-kubernetes-embedded-resource").forbidden("must not be used inside of resource meta"),
        );
    }
    if schema.at("uniqueItems").is_true() {
        errors.push(
            schema.at("uniqueItems").forbidden(
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ),
        );
    }
    let additional = schema.at("additionalProperties");
    if !schema.at("properties").is_empty() && additional.is_set() && additional.value != &Value::Bool(true) {
        errors.push(additional.forbidden("additionalProperties and properties are mutual exclusive"));
    }
    let unknown = schema.at("x-kubernetes-preserve-unknown-fields");
    if unknown.value == &Value::Bool(false) {
        errors.push(unknown.invalid("must be true or undefined"));
    }
    collections(schema, errors);
    rules::check_texts(schema, errors);
    below(schema, is_root, inherited, errors, totals);
    // Rules of an invalid schema, or of one around it, cannot be type-checked.
    if inherited.checks_rules && errors.len() == before {
        let place = SchemaPosition {
            is_resource: is_root || schema.at("x-kubernetes-embedded-resource").is_true(),
            uncorrelatable: inherited.uncorrelatable.as_deref(),
            cardinality: inherited.cardinality,
        };
        rules::check(schema, &place, totals);
    }
}

/// Returns the maximum number of elements of a value, if the schema limits it.
fn max_elements(schema: &Cursor<'_>) -> Option<u64> {
    let limit = |name: &str| schema.at(name).int().map(|most| u64::try_from(most).unwrap_or(0));
    match schema.at("type").text() {
        "object" if schema.at("additionalProperties").is_set() => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

fn below(
    schema: &Cursor<'_>,
    is_root: bool,
    inherited: &Inherited,
    errors: &mut Errors,
    totals: &mut Totals,
) {
    let mut inherited = inherited.clone();
    inherited.cardinality =
        inherited.cardinality.zip(max_elements(schema)).map(|(count, each)| count.saturating_mul(each));
    let inherited = &inherited;
    let additional = schema.at("additionalProperties");
    if additional.value.is_object() {
        let mut inner = inherited.clone();
        if inherited.is_metadata {
            inner.forbids_defaults =
                Some("inside additionalProperties applying to object metadata".to_owned());
        }
        keywords(&additional, false, &inner, errors, totals);
    }
    let is_resource = is_root || schema.at("x-kubernetes-embedded-resource").is_true();
    for (name, property) in schema.at("properties").entries() {
        let mut inner = inherited.clone();
        if is_resource && META.contains(&name) {
            inner.is_metadata = true;
            if is_root {
                inner.forbids_defaults = Some(format!("in top-level {name}"));
            }
        }
        keywords(&property, false, &inner, errors, totals);
    }
    let combined = Inherited { checks_rules: false, ..inherited.clone() };
    for list in ["allOf", "anyOf", "oneOf"] {
        for alternative in schema.at(list).items() {
            keywords(&alternative, false, &combined, errors, totals);
        }
    }
    if schema.at("not").value.is_object() {
        keywords(&schema.at("not"), false, &combined, errors, totals);
    }
    let items = schema.at("items");
    if items.value.is_object() {
        let mut inner = inherited.clone();
        if schema.at("x-kubernetes-list-type").text() != "map" {
            inner.uncorrelatable.get_or_insert_with(|| schema.path());
        }
        keywords(&items, false, &inner, errors, totals);
    }
}

/// Checks that list types and map types match the types of the elements.
fn collections(schema: &Cursor<'_>, errors: &mut Errors) {
    let kind = schema.at("type");
    let typed = |expected: &str, keyword: &str, errors: &mut Errors| {
        let detail = format!("must be {expected} if {keyword} is specified");
        if kind.text() != expected {
            errors.push(if kind.is_empty() { kind.missing(detail) } else { kind.invalid(detail) });
        }
        kind.text() == expected
    };
    let map = schema.at("x-kubernetes-map-type");
    if map.is_set() {
        typed("object", "x-kubernetes-map-type", errors);
        map.one_of(&["atomic", "granular"], errors);
    }
    let (list, keys, items) =
        (schema.at("x-kubernetes-list-type"), schema.at("x-kubernetes-list-map-keys"), schema.at("items"));
    if list.is_set() {
        let is_list = typed("array", "x-kubernetes-list-type", errors);
        list.one_of(&["atomic", "set", "map"], errors);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        if is_list && list.text() == "set" {
            let (inner_list, inner_map) =
                (items.at("x-kubernetes-list-type"), items.at("x-kubernetes-map-type"));
            if items.at("type").text() == "array" && inner_list.is_set() && inner_list.text() != "atomic" {
                errors.push(inner_list.invalid(detail));
            }
            if items.at("type").text() == "object" && inner_map.text() != "atomic" {
                errors.push(inner_map.invalid(detail));
            }
        }
        if matches!(list.text(), "set" | "map") && items.at("nullable").is_true() {
            errors.push(
                items
                    .at("nullable")
                    .forbidden(format!("cannot be nullable when x-kubernetes-list-type is {}", list.text())),
            );
        }
    }
    if !keys.is_empty() && list.text() != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if list.is_empty() { list.missing(detail) } else { list.invalid(detail) });
    }
    if list.text() == "map" {
        map_keys(&keys, &items, errors);
    }
}

fn map_keys(keys: &Cursor<'_>, items: &Cursor<'_>, errors: &mut Errors) {
    if keys.is_empty() {
        errors.push(keys.missing("must not be empty if x-kubernetes-list-type is map"));
    }
    if !items.is_set() {
        errors.push(items.missing("must have a schema if x-kubernetes-list-type is map"));
        return;
    }
    if items.at("type").text() != "object" {
        errors
            .push(items.at("type").invalid("must be object if parent array's x-kubernetes-list-type is map"));
        return;
    }
    let properties = items.at("properties");
    let required_at = items.at("required");
    let required: HashSet<&str> = required_at.items().map(|required| required.text()).collect();
    let mut seen = HashSet::new();
    for key in keys.items() {
        if errors.len() >= MAX_ERRORS {
            return;
        }
        let property = properties.key(key.text());
        if !property.is_set() {
            errors.push(keys.invalid("entries must all be names of item properties"));
        } else if matches!(property.at("type").text(), "array" | "object") {
            errors.push(
                property
                    .at("type")
                    .invalid("must be a scalar type if parent array's x-kubernetes-list-type is map"),
            );
        } else {
            if !required.contains(key.text()) && !property.at("default").is_set() {
                errors.push(property.at("default").missing("this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"));
            }
            if property.at("nullable").is_true() {
                errors.push(
                    property.at("nullable").forbidden(
                        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                    ),
                );
            }
        }
        if !seen.insert(key.text()) {
            errors.push(keys.invalid("must not contain duplicate entries"));
        }
    }
}
