//! Where the request path meets the modules that know bodies, tables and conversions.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    kinds::Kind,
    rest::options::FieldValidation,
    schema::{Shape, TypeRef},
    status::ApiError,
    storage::Content,
};

/// A body that was understood.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The object.
    pub(crate) object: Value,
    /// What to tell the client.
    pub(crate) warnings: Vec<String>,
}

/// Reads a body.
pub(crate) fn decode(
    _content_type: Option<&str>,
    body: &[u8],
    kind: &Kind,
    _validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let mut object: Value = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {error}",
            kind.gvk.kind
        ))
    })?;
    if !object.is_object() {
        return Err(ApiError::bad_request("the object provided is unrecognized"));
    }
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.gvk.kind.clone().into();
    Ok(Decoded { object, warnings: Vec::new() })
}

/// Whether objects of `kind` are sent as they are stored.
pub(crate) fn is_stored_version(kind: &Kind) -> bool {
    kind.gvk == kind.storage
}

/// A stored object in the version of `kind`.
pub(crate) fn from_stored(content: &Content, version: u64, kind: &Kind) -> Value {
    content.to_value(&kind.api_version(), &kind.gvk.kind, version)
}

/// An object of `kind` in the version it is stored in.
pub(crate) fn to_stored(object: Value, _kind: &Kind) -> Value {
    object
}

/// The fields of an object that selectors may ask about beside name and namespace.
pub(crate) fn selectable_fields(_object: &Value, _kind: &Kind) -> Box<[(Arc<str>, Box<str>)]> {
    Box::default()
}

/// Objects as a table.
pub(crate) fn table(_kind: &Kind, objects: &[Value], _now: SystemTime) -> Value {
    let rows: Vec<Value> =
        objects.iter().map(|object| json!({"cells": [object["metadata"]["name"]]})).collect();
    json!({"columnDefinitions": [{"name": "Name", "type": "string", "format": "name"}], "rows": rows})
}

/// An object of `kind` with nothing in it but what is always written.
pub(crate) fn zero_object(kind: &Kind) -> Value {
    if kind.custom.is_some() { json!({}) } else { zero(&kind.ty, 0) }
}

fn zero(ty: &TypeRef, depth: usize) -> Value {
    let mut object = serde_json::Map::new();
    if let Shape::Struct(members) = ty.shape()
        && depth < 8
    {
        for field in &members.fields {
            match &field.default {
                Some(Value::Object(default)) if default.is_empty() => {
                    object.insert(field.name.to_string(), zero(&ty.at(field.ty), depth + 1));
                }
                default if field.is_required => {
                    object.insert(field.name.to_string(), default.clone().unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    Value::Object(object)
}

/// Whether selectors may ask about a field.
pub(crate) fn check_field(kind: &Kind, field: &str) -> Result<(), ApiError> {
    let _ = kind;
    if matches!(field, "metadata.name" | "metadata.namespace") {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    )))
}

/// A JSON patch.
pub(crate) fn json_patch(_current: &Value, _patch: &[u8]) -> Result<Value, ApiError> {
    Err(ApiError::internal("not here yet"))
}

/// A merge patch.
pub(crate) fn merge(current: &Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut merged = current.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            merged.remove(&name);
        } else {
            let current = merged.remove(&name).unwrap_or_default();
            merged.insert(name, merge(&current, value));
        }
    }
    Value::Object(merged)
}

/// A strategic merge patch.
pub(crate) fn strategic(current: &Value, patch: &Value, _ty: &TypeRef) -> Result<Value, ApiError> {
    Ok(merge(current, patch.clone()))
}

/// The options of a deletion.
pub(crate) fn delete_options(_content_type: Option<&str>, body: &[u8]) -> Result<Value, ApiError> {
    let options: Value =
        serde_json::from_slice(body).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let kind = options.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        return Err(ApiError::bad_request(format!("no kind {kind:?} is registered for version \"v1\"")));
    }
    Ok(options)
}
