//! OpenAPI v2: one document of everything that is served, derived from the documents of version 3.

use serde_json::{Map, Value, json};

use super::document;
use crate::kinds::Kinds;

/// Keywords that exist only in version 3, and defaults, which upstream omits in version 2.
const DROPPED: [&str; 6] = ["allOf", "anyOf", "default", "not", "nullable", "oneOf"];
const GVK: &str = "x-kubernetes-group-version-kind";

/// Returns the document at `/openapi/v2`.
pub(crate) fn document_v2(kinds: &Kinds) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for group in kinds.groups() {
        for version in &group.versions {
            let Some(mut document_v3) = document(kinds, &group.name, &version.version) else { continue };
            if let Value::Object(items) = document_v3["paths"].take() {
                paths.extend(items.into_iter().map(|(path, item)| (path, path_item(&item))));
            }
            let Value::Object(schemas) = document_v3["components"]["schemas"].take() else { continue };
            for (name, schema) in schemas {
                // A type that several versions use carries the kind of the version in which it is served.
                if definitions.get(&name).is_none_or(|known: &Value| known.get(GVK).is_none()) {
                    definitions.insert(name, flat(&schema));
                }
            }
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {
            "type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication",
        }},
        "security": [{"BearerToken": []}],
    })
}

/// Converts a schema of version 3 to version 2.
fn flat(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut out = Map::new();
    // Version 3 permits no siblings of a reference; version 2 does.
    if let Some([single]) = members.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
        && let Some(Value::String(to)) = single.get("$ref")
    {
        out.insert("$ref".into(), definition(to).into());
    }
    for (name, value) in members.iter().filter(|(name, _)| !DROPPED.contains(&name.as_str())) {
        let value = match (name.as_str(), value) {
            ("$ref", Value::String(to)) => definition(to).into(),
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), flat(schema))).collect()
            }
            ("items" | "additionalProperties", schema) => flat(schema),
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    remove_unsupported_types(members, &mut out);
    Value::Object(out)
}

/// Removes types that clients of version 2 cannot parse: those of values with several possible types.
fn remove_unsupported_types(schema: &Map<String, Value>, out: &mut Map<String, Value>) {
    let is = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let has_several_types = schema.get("oneOf").and_then(Value::as_array).is_some_and(|several| {
        several
            .iter()
            .all(|one| one.as_object().is_some_and(|one| one.len() == 1 && one.contains_key("type")))
    });
    if !out.contains_key("type") && has_several_types && !is("x-kubernetes-int-or-string") {
        out.insert("type".into(), "string".into());
    }
    let is_open = is("x-kubernetes-preserve-unknown-fields");
    if is("nullable") || is_open {
        out.remove("items");
        out.remove("properties");
    }
    let is_type = |out: &Map<String, Value>, ty: &str| out.get("type").is_some_and(|known| known == ty);
    let is_list_of_nothing = is_type(out, "array") && !out.contains_key("items");
    if is("nullable") || is_list_of_nothing || (is_open && is_type(out, "object")) {
        out.remove("type");
    }
    let is_nullable = |name: &Value| {
        let property = name.as_str().and_then(|name| schema.get("properties")?.get(name));
        property.is_some_and(|property| property.get("nullable") == Some(&Value::Bool(true)))
    };
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| !is_nullable(name));
        if required.is_empty() {
            out.remove("required");
        }
    }
}

fn definition(reference: &str) -> String {
    reference.replacen("#/components/schemas/", "#/definitions/", 1)
}

fn path_item(item: &Value) -> Value {
    let Value::Object(members) = item else { return item.clone() };
    members
        .iter()
        .map(|(name, value)| {
            let value = if name == "parameters" { parameters(value).into() } else { operation(value) };
            (name.clone(), value)
        })
        .collect()
}

fn parameters(given: &Value) -> Vec<Value> {
    let given = given.as_array().into_iter().flatten();
    given
        .map(|parameter| {
            let mut out = parameter.clone();
            if let Some(members) = out.as_object_mut() {
                members.remove("schema");
                members.extend(parameter["schema"].as_object().cloned().unwrap_or_default());
            }
            out
        })
        .collect()
}

fn operation(operation: &Value) -> Value {
    let Value::Object(members) = operation else { return operation.clone() };
    let mut out: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "parameters" | "requestBody" | "responses"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut given = members.get("parameters").map(parameters).unwrap_or_default();
    let mut consumes = vec![Value::from("*/*")];
    if let Some(body) = members.get("requestBody") {
        let content = body.get("content").and_then(Value::as_object);
        consumes = content.into_iter().flatten().map(|(media_type, _)| media_type.as_str().into()).collect();
        let schema = content.and_then(|content| content.values().next()).map(|of| flat(&of["schema"]));
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body.get("required") == Some(&Value::Bool(true)) {
            parameter["required"] = true.into();
        }
        given.insert(0, parameter);
    }
    let mut produces: Vec<Value> = Vec::new();
    let mut responses = Map::new();
    for (code, response) in members.get("responses").and_then(Value::as_object).into_iter().flatten() {
        let mut converted = json!({"description": response["description"]});
        let content = response.get("content").and_then(Value::as_object);
        if let Some((_, of)) = content.and_then(|content| content.iter().next()) {
            converted["schema"] = flat(&of["schema"]);
        }
        let media_types =
            content.into_iter().flatten().map(|(media_type, _)| Value::from(media_type.as_str()));
        produces.extend(media_types);
        responses.insert(code.clone(), converted);
    }
    out.insert("consumes".into(), consumes.into());
    out.insert("produces".into(), produces.into());
    out.insert("schemes".into(), json!(["https"]));
    if !given.is_empty() {
        out.insert("parameters".into(), given.into());
    }
    out.insert("responses".into(), responses.into());
    Value::Object(out)
}
