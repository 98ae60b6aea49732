//! The annotation of client-side apply, which `kubectl apply --server-side` takes over.

use serde_json::{Map, Value};

use super::{
    WriteTarget,
    set::FieldSet,
    walk::{compare, owned},
};

/// The manager for which the annotation is kept: the default manager of kubectl.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The maximum size of all annotations of an object together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Returns the fields that client-side apply set and that still have the same value. These are no conflict for kubectl.
pub(super) fn fields(live: &Value, subject: &WriteTarget<'_>) -> Option<FieldSet> {
    let text = live["metadata"]["annotations"][ANNOTATION].as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last["apiVersion"].as_str() != Some(&subject.api_version) {
        return None;
    }
    let mut fields = owned(&last, subject.ty).ok()?;
    let changes = compare(Some(&last), Some(live), subject.ty).ok()?;
    for set in [&changes.modified, &changes.added, &changes.removed] {
        fields.subtract(set);
    }
    Some(fields)
}

/// Updates the annotation, if the object has it.
pub(super) fn renew(object: &mut Value, config: &Value) {
    let Some(annotations) = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.to_owned(), format!("{config}\n").into());
    if size(annotations) > MAX_ANNOTATIONS_BYTES {
        annotations.remove(ANNOTATION);
    }
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}
