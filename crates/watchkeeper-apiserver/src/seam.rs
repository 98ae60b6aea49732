//! Where the request path meets the modules that know bodies, tables and conversions.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    kinds::Kind,
    rest::scale::ScalePaths,
    selector::LabelSelector,
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

/// Where a kind has what its scale is about; none for kinds that cannot be scaled.
pub(crate) fn scale_paths(kind: &Kind) -> Option<ScalePaths> {
    kind.subresource("scale")?;
    let path = |text: &str| text.split('.').map(str::to_owned).collect();
    Some(ScalePaths { spec: path("spec.replicas"), status: path("status.replicas"), selector: path("spec.selector") })
}

/// A selector as it stands in objects: `matchLabels` and `matchExpressions`, or labels alone. None for no selector, or one
/// that is not understood.
pub(crate) fn label_selector(selector: Option<&Value>) -> Option<LabelSelector> {
    LabelSelector::parse(&selector_text(selector?)).ok()
}

/// A selector of an object, as it is written in queries.
pub(crate) fn selector_text(selector: &Value) -> String {
    let is_structured = selector.get("matchLabels").is_some_and(Value::is_object)
        || selector.get("matchExpressions").is_some_and(Value::is_array);
    let labels = if is_structured { selector.get("matchLabels") } else { Some(selector) };
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
<<<<<<< HEAD
    let expressions = selector.get("matchExpressions").filter(|_| is_structured).and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |member: &str| expression.get(member).and_then(Value::as_str).unwrap_or_default();
        let key = text("key");
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
=======
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
>>>>>>> api-kinds
    }
    parts.sort();
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}
