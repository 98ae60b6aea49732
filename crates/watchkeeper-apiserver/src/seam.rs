//! Where the request path meets the modules that know bodies, tables and conversions.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    kinds::Kind,
    status::ApiError,
    storage::Content,
};

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

/// An object of one kind as another version of it.
pub(crate) fn convert(mut object: Value, _from: &Kind, to: &Kind) -> Value {
    object["apiVersion"] = to.api_version().into();
    object["kind"] = to.gvk.kind.clone().into();
    object
}
