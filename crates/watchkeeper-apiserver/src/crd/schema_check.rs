//! What the schema of a custom resource must be: structural, so that objects can be pruned, defaulted and applied by it.

use regex::Regex;
use serde_json::Value;

use super::{
    cel,
    prune::{META, prune_object, set_defaults},
    structural::{Structural, Ty},
    validate,
};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{At, Errors},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Where in a schema a part of it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Member,
}

/// What the parts around a part of a schema ask of it.
#[derive(Clone, Default)]
struct Around {
    is_metadata: bool,
    forbids_defaults: Option<String>,
    /// Where what lies below cannot be told from what it was before a change.
    uncorrelatable: Option<String>,
}

/// What is wrong with the schema of a version.
pub(crate) fn check(schema: &At<'_>, has_status: bool, errors: &mut Errors) {
    if schema.at("nullable").is_true() {
        errors.push(schema.at("nullable").forbidden("nullable cannot be true at the root"));
    }
    let kind = schema.at("type");
    if has_status && !kind.is_empty() && kind.text() != "object" {
        errors.push(kind.invalid("only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled"));
    }
    let before = errors.len();
    invariants(schema, Level::Root, errors);
    completeness(schema, errors);
    let mut is_sound = errors.len() == before;
    if is_sound {
        let whole = Structural::read(schema.value);
        defaults(schema, &whole, true, false, errors);
        is_sound = errors.len() == before;
    }
    keywords(schema, true, is_sound, &Around::default(), errors);
}

fn members<'a>(at: &'a At<'a>) -> impl Iterator<Item = At<'a>> {
    at.entries().map(|(_, member)| member)
}

/// Types are given where a value can be, and nowhere else.
fn invariants(schema: &At<'_>, level: Level, errors: &mut Errors) {
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
        // Metadata of an object is what it is; a schema may speak of its names only.
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

fn metadata(schema: &At<'_>, level: Level, errors: &mut Errors) {
    let kind = schema.at("type");
    if kind.text() != "object" {
        errors.push(kind.invalid("must be object"));
    }
    let known = ["type", "properties", "description", "title", "default"];
    let says_more = schema.entries().any(|(name, _)| !known.contains(&name));
    let properties = schema.at("properties");
    let names_more = properties.entries().any(|(name, _)| !matches!(name, "name" | "generateName"));
    if level == Level::Root && (says_more || names_more) {
        errors.push(schema.forbidden("must not specify anything other than name and generateName, but metadata is implicitly specified"));
    }
}

fn pattern(schema: &At<'_>, errors: &mut Errors) {
    let pattern = schema.at("pattern");
    if let Err(error) = Regex::new(pattern.text()) {
        let why = error.to_string().lines().last().unwrap_or_default().to_owned();
        errors.push(pattern.invalid(format!("must be a valid regular expression, but isn't: {why}")));
    }
}

fn combinations(schema: &At<'_>, is_int_or_string: bool, errors: &mut Errors) {
    for list in ["anyOf", "allOf", "oneOf"] {
        let list_at = schema.at(list);
        let is_known_pair = is_int_or_string && list == "anyOf" && list_at.items().count() == 2;
        for (index, alternative) in list_at.items().enumerate() {
            // Number or text is written with types, and is the one combination that may be.
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

/// Alternatives narrow down values; what those are is said outside of them.
fn nested(schema: &At<'_>, errors: &mut Errors) {
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

/// What alternatives speak of must exist outside of them.
fn completeness(schema: &At<'_>, errors: &mut Errors) {
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

fn complete(schema: &At<'_>, alternative: &Value, origin: &str, errors: &mut Errors) {
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

/// A default must be right itself, and must not be pruned.
fn defaults(at: &At<'_>, schema: &Structural, is_root: bool, is_metadata: bool, errors: &mut Errors) {
    if let Some(default) = &schema.default
        && !is_metadata
    {
        let place = at.at("default");
        let mut pruned = default.clone();
        prune_value(&mut pruned, schema);
        if pruned != *default {
            errors.push(place.invalid("must not have unknown fields"));
        } else {
            let mut completed = default.clone();
            set_defaults(&mut completed, schema);
            errors.extend(validate::validate(&completed, None, schema, &place.path()));
            let mut listed = Vec::new();
            validate::list_types(&completed, schema, &place.path(), &mut listed);
            errors.extend(listed);
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
    // Pruning starts at objects: a default of another type has nothing to prune.
    if value.is_object() && !schema.is_embedded && schema.ty == Some(Ty::Object) {
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

/// Keywords that are not supported, or not together.
fn keywords(schema: &At<'_>, is_root: bool, checks_rules: bool, around: &Around, errors: &mut Errors) {
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
    if let (Some(reason), true) = (&around.forbids_defaults, schema.at("default").is_set()) {
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
    if around.is_metadata && schema.at("x-kubernetes-embedded-resource").is_true() {
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
    rule_texts(schema, errors);
    below(schema, is_root, checks_rules, around, errors);
    if checks_rules && errors.len() == before {
        rules(schema, is_root, around, errors);
    }
}

fn below(schema: &At<'_>, is_root: bool, checks_rules: bool, around: &Around, errors: &mut Errors) {
    let additional = schema.at("additionalProperties");
    if additional.value.is_object() {
        let mut inner = around.clone();
        if around.is_metadata {
            inner.forbids_defaults =
                Some("inside additionalProperties applying to object metadata".to_owned());
        }
        keywords(&additional, false, checks_rules, &inner, errors);
    }
    let is_resource = is_root || schema.at("x-kubernetes-embedded-resource").is_true();
    for (name, property) in schema.at("properties").entries() {
        let mut inner = around.clone();
        if schema.at("x-kubernetes-map-type").text() == "atomic" {
            inner.uncorrelatable.get_or_insert_with(|| schema.path());
        }
        if is_resource && META.contains(&name) {
            inner.is_metadata = true;
            if is_root {
                inner.forbids_defaults = Some(format!("in top-level {name}"));
            }
        }
        keywords(&property, false, checks_rules, &inner, errors);
    }
    for list in ["allOf", "anyOf", "oneOf"] {
        for alternative in schema.at(list).items() {
            keywords(&alternative, false, false, around, errors);
        }
    }
    if schema.at("not").value.is_object() {
        keywords(&schema.at("not"), false, false, around, errors);
    }
    let items = schema.at("items");
    if items.value.is_object() {
        let mut inner = around.clone();
        if schema.at("x-kubernetes-list-type").text() != "map" {
            inner.uncorrelatable.get_or_insert_with(|| schema.path());
        }
        keywords(&items, false, checks_rules, &inner, errors);
    }
}

/// How lists and maps are merged must fit what they are lists and maps of.
fn collections(schema: &At<'_>, errors: &mut Errors) {
    let kind = schema.at("type");
    let typed = |wanted: &str, keyword: &str, errors: &mut Errors| {
        let detail = format!("must be {wanted} if {keyword} is specified");
        if kind.text() != wanted {
            errors.push(if kind.is_empty() { kind.missing(detail) } else { kind.invalid(detail) });
        }
        kind.text() == wanted
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

fn map_keys(keys: &At<'_>, items: &At<'_>, errors: &mut Errors) {
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
    let mut seen: Vec<String> = Vec::new();
    for key in keys.items() {
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
            let is_required = items.at("required").items().any(|required| required.text() == key.text());
            if !is_required && !property.at("default").is_set() {
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
        if seen.iter().any(|seen| seen == key.text()) {
            errors.push(keys.invalid("must not contain duplicate entries"));
        }
        seen.push(key.text().to_owned());
    }
}

/// Texts of rules and their messages.
fn rule_texts(schema: &At<'_>, errors: &mut Errors) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    for rule in schema.at("x-kubernetes-validations").items() {
        let (text, message, expression, path) =
            (rule.at("rule"), rule.at("message"), rule.at("messageExpression"), rule.at("fieldPath"));
        let said = message.text().trim();
        if text.text().trim().is_empty() {
            errors.push(text.missing("rule is not specified"));
        } else if !message.is_empty() && said.is_empty() {
            errors.push(message.invalid("must be non-empty if specified"));
        } else if said.contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        } else if text.text().trim().contains(['\n', '\r']) && said.is_empty() {
            errors.push(message.missing("message must be specified if rule contains line breaks"));
        }
        if !expression.is_empty() && expression.text().trim().is_empty() {
            errors.push(expression.missing("messageExpression must be non-empty if specified"));
        }
        rule.at("reason").one_of(&REASONS, errors);
        if !path.is_empty() {
            if path.text().trim().is_empty() {
                errors.push(path.invalid("must be non-empty if specified"));
            } else if path.text().contains(['\n', '\r']) {
                errors.push(path.invalid("must not contain line breaks"));
            } else if !leads_somewhere(schema.value, path.text()) {
                errors.push(path.invalid("must be a valid path"));
            }
        }
    }
}

/// `.a.b` and `.a['b.c']` lead to members the schema names.
fn leads_somewhere(schema: &Value, path: &str) -> bool {
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let Some((inner, after)) = after.split_once("']") else { return false };
            (name, rest) = (inner, after);
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (inner, after) = after.split_at(end);
            (name, rest) = (inner, after);
        } else {
            return false;
        }
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        match property.or_else(|| schema.get("additionalProperties").filter(|of| of.is_object())) {
            Some(below) => schema = below,
            None => return false,
        }
    }
    true
}

fn rules(schema: &At<'_>, is_root: bool, around: &Around, errors: &mut Errors) {
    let rules = schema.at("x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let structural = Structural::read(schema.value);
    for rule in rules.items() {
        let shown = |at: &At<'_>, detail: String| {
            FieldError::new(FieldErrorKind::Invalid, at.path(), Some(rule.value.clone()), detail)
        };
        let (text, expression, optional) =
            (rule.at("rule"), rule.at("messageExpression"), rule.at("optionalOldSelf"));
        match cel::compile(text.text().trim()) {
            Err(detail) => errors.push(shown(&text, detail)),
            Ok(compiled) => {
                if let Some(detail) =
                    cel::problem(&compiled, &structural, is_root, optional.is_true(), Ty::Boolean)
                {
                    errors.push(shown(&text, detail));
                }
                let uses_old = compiled.program.references().has_variable("oldSelf");
                match (&around.uncorrelatable, uses_old) {
                    (Some(path), true) => errors.push(text.invalid(format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
                    ))),
                    (_, false) if optional.is_set() => {
                        errors.push(optional.invalid("may not be set if oldSelf is not used in rule"))
                    }
                    _ => {}
                }
            }
        }
        if !expression.is_empty() {
            let problem = match cel::compile(expression.text().trim()) {
                Err(detail) => Some(detail),
                Ok(compiled) => cel::problem(&compiled, &structural, is_root, optional.is_true(), Ty::String),
            };
            errors.extend(problem.map(|detail| shown(&expression, detail)));
        }
    }
}
