//! Objects as YAML.

use serde::Serialize;
use serde_json::Value;

/// An object could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("{kind} cannot be written as YAML: {source}")]
#[non_exhaustive]
pub struct YamlError {
    /// The kind of the object, as far as it says so.
    pub kind: String,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Objects as one stream of YAML documents, in the order given. Members are in the order the type has them, except that
/// `apiVersion` and `kind` come first.
///
/// # Errors
/// If one cannot be written.
pub fn to_yaml<K: Serialize>(objects: &[K]) -> Result<String, YamlError> {
    let values = objects.iter().map(value).collect::<Result<Vec<Value>, _>>()?;
    documents(&values.iter().collect::<Vec<_>>())
}

pub(super) fn value<K: Serialize>(object: &K) -> Result<Value, YamlError> {
    let failed =
        |source: serde_json::Error| YamlError { kind: "an object".to_owned(), source: source.into() };
    serde_json::to_value(object).map_err(failed)
}

pub(super) fn documents(values: &[&Value]) -> Result<String, YamlError> {
    let mut stream = String::new();
    for value in values {
        let document = serde_saphyr::to_string(value).map_err(|source| {
            let kind = value.get("kind").and_then(Value::as_str).unwrap_or("an object");
            YamlError { kind: kind.to_owned(), source: source.into() }
        })?;
        stream.push_str("---\n");
        stream.push_str(document.trim_start_matches("---\n"));
        if !stream.ends_with('\n') {
            stream.push('\n');
        }
    }
    Ok(stream)
}
