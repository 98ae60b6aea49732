//! The rules of structural schemas: the type of each value is declared in exactly one place.

use serde_json::Value;

use crate::{
    crd::pattern::Pattern,
    strategy::{Cursor, Errors},
};

/// The position of a part in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Member,
}

/// Reports violations of the rules of structural schemas.
pub(super) fn check(schema: &Cursor<'_>, errors: &mut Errors) {
    invariants(schema, Level::Root, errors);
    completeness(schema, errors);
}

fn members<'a>(at: &'a Cursor<'a>) -> impl Iterator<Item = Cursor<'a>> {
    at.entries().map(|(_, member)| member)
}

/// Checks that types are declared for every value, and nowhere else.
fn invariants(schema: &Cursor<'_>, level: Level, errors: &mut Errors) {
    let kind = schema.at("type");
    let items = schema.at("items");
    if kind.text() == "array" && !items.is_set() {
        errors.push(items.missing("must be specified"));
    }
    if items.value.is_object() {
        invariants(&items, Level::Item, errors);
    }
    let properties = schema.at("properties");
    let is_embedded = schema.at("x-kubernetes-embedded-resource").is_true();
    let is_resource = level == Level::Root || is_embedded;
    for (name, property) in properties.entries() {
        // The type of the metadata of an object is fixed; a schema may restrict its names only.
        if name == "metadata" && is_resource {
            metadata(&property, level, errors);
        } else {
            invariants(&property, Level::Member, errors);
        }
        if is_resource && matches!(name, "kind" | "apiVersion") && property.at("type").text() != "string" {
            errors.push(property.at("type").invalid("must be string"));
        }
    }
    let additional = schema.at("additionalProperties");
    if additional.is_set() && level == Level::Root {
        errors.push(additional.forbidden("must not be used at the root"));
    }
    if additional.is_set() && is_embedded {
        errors.push(additional.forbidden("must not be used if x-kubernetes-embedded-resource is set"));
    }
    if additional.value.is_object() {
        invariants(&additional, Level::Member, errors);
    }
    let is_int_or_string = schema.at("x-kubernetes-int-or-string").is_true();
    let keeps_unknown = schema.at("x-kubernetes-preserve-unknown-fields").is_true();
    for (member, is_set) in [
        ("x-kubernetes-preserve-unknown-fields", keeps_unknown),
        ("x-kubernetes-embedded-resource", is_embedded),
    ] {
        if is_int_or_string && is_set {
            errors.push(schema.at(member).invalid("must be false if x-kubernetes-int-or-string is true"));
        }
    }
    if is_embedded && kind.text() != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() { kind.missing(detail) } else { kind.invalid(detail) });
    } else if kind.is_empty() && !is_int_or_string && !keeps_unknown {
        errors.push(kind.missing(match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Member => "must not be empty for specified object fields",
        }));
    }
    if level == Level::Root && !kind.is_empty() && kind.text() != "object" {
        errors.push(kind.invalid("must be object at the root"));
    }
    if is_embedded && !keeps_unknown && properties.is_empty() {
        errors.push(properties.missing("must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"));
    }
    combinations(schema, is_int_or_string, errors);
    pattern(schema, errors);
}

fn metadata(schema: &Cursor<'_>, level: Level, errors: &mut Errors) {
    let kind = schema.at("type");
    if kind.text() != "object" {
        errors.push(kind.invalid("must be object"));
    }
    let known = ["type", "properties", "description", "title", "default"];
    let has_other_keywords = schema.entries().any(|(name, _)| !known.contains(&name));
    let properties = schema.at("properties");
    let names_more = properties.entries().any(|(name, _)| !matches!(name, "name" | "generateName"));
    if level == Level::Root && (has_other_keywords || names_more) {
        errors.push(schema.forbidden("must not specify anything other than name and generateName, but metadata is implicitly specified"));
    }
}

fn pattern(schema: &Cursor<'_>, errors: &mut Errors) {
    let pattern = schema.at("pattern");
    if let Err(error) = Pattern::new(pattern.text()) {
        let why = error.lines().last().unwrap_or_default().to_owned();
        errors.push(pattern.invalid(format!("must be a valid regular expression, but isn't: {why}")));
    }
}

fn combinations(schema: &Cursor<'_>, is_int_or_string: bool, errors: &mut Errors) {
    for list in ["anyOf", "allOf", "oneOf"] {
        let list_at = schema.at(list);
        let is_known_pair = is_int_or_string && list == "anyOf" && list_at.items().count() == 2;
        for (index, alternative) in list_at.items().enumerate() {
            // `int-or-string` is written with types, the only combination that permits this.
            let is_known = is_known_pair
                || (is_int_or_string && list == "allOf" && index == 0 && alternative.at("anyOf").is_set());
            if !is_known {
                nested(&alternative, errors);
            }
        }
    }
    let not = schema.at("not");
    if not.value.is_object() {
        nested(&not, errors);
    }
}

/// Checks that logical junctors only restrict values, and declare no types.
fn nested(schema: &Cursor<'_>, errors: &mut Errors) {
    const FORBIDDEN: [(&str, &str); 11] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
    ];
    for (member, detail) in FORBIDDEN {
        let member = schema.at(member);
        if !member.is_empty() && member.value != &Value::Bool(false) {
            errors.push(member.forbidden(detail));
        }
    }
    if schema.at("nullable").is_true() {
        errors.push(schema.at("nullable").forbidden("must be false to be structural"));
    }
    if !schema.at("x-kubernetes-validations").is_empty() {
        errors.push(schema.at("x-kubernetes-validations").forbidden("must be empty to be structural"));
    }
    let properties = schema.at("properties");
    for (name, property) in properties.entries() {
        if name == "metadata" {
            errors.push(property.forbidden("must not be specified in a nested context"));
        }
        nested(&property, errors);
    }
    if schema.at("items").value.is_object() {
        nested(&schema.at("items"), errors);
    }
    combinations(schema, false, errors);
    pattern(schema, errors);
}

/// Checks that the fields in logical junctors are declared outside of them.
fn completeness(schema: &Cursor<'_>, errors: &mut Errors) {
    for list in ["anyOf", "allOf", "oneOf"] {
        for alternative in schema.at(list).items() {
            complete(schema, alternative.value, &alternative.path(), errors);
        }
    }
    if schema.at("not").value.is_object() {
        complete(schema, schema.at("not").value, &schema.at("not").path(), errors);
    }
    for property in members(&schema.at("properties")) {
        completeness(&property, errors);
    }
    for below in ["items", "additionalProperties"] {
        if schema.at(below).value.is_object() {
            completeness(&schema.at(below), errors);
        }
    }
}

fn complete(schema: &Cursor<'_>, alternative: &Value, origin: &str, errors: &mut Errors) {
    let properties = schema.at("properties");
    for (name, narrowed) in alternative.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let property = properties.key(name);
        if property.is_set() {
            complete(&property, narrowed, &format!("{origin}.properties[{name}]"), errors);
        } else if schema.at("additionalProperties").is_empty() {
            errors.push(property.missing(format!("because it is defined in {origin}.properties[{name}]")));
        }
    }
    if let Some(narrowed) = alternative.get("items") {
        let items = schema.at("items");
        if items.is_set() {
            complete(&items, narrowed, &format!("{origin}.items"), errors);
        } else {
            errors.push(items.missing(format!("because it is defined in {origin}.items")));
        }
    }
    for list in ["anyOf", "allOf", "oneOf"] {
        let inner = alternative.get(list).and_then(Value::as_array).into_iter().flatten();
        for (index, inner) in inner.enumerate() {
            complete(schema, inner, &format!("{origin}.{list}[{index}]"), errors);
        }
    }
}
