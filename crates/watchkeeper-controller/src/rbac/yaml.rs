//! Serialization of objects as YAML.

use serde::Serialize;

/// The error returned when an object cannot be serialized as YAML.
#[derive(Debug, thiserror::Error)]
#[error("serialize {object} as YAML: {source}")]
#[non_exhaustive]
pub struct YamlError {
    /// The type of the object.
    pub object: &'static str,
    /// The serialization error.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Serializes objects as one stream of YAML documents, in the given order. Fields keep the order of their
/// types.
///
/// # Errors
/// Returns a [`YamlError`] if an object cannot be serialized.
pub fn to_yaml<K: Serialize>(objects: &[K]) -> Result<String, YamlError> {
    objects.iter().map(document).collect()
}

/// Serializes one document of a stream.
pub(super) fn document<K: Serialize>(object: &K) -> Result<String, YamlError> {
    let document = serde_saphyr::to_string(object)
        .map_err(|source| YamlError { object: std::any::type_name::<K>(), source: source.into() })?;
    let (document, end) =
        (document.trim_start_matches("---\n"), if document.ends_with('\n') { "" } else { "\n" });
    Ok(format!("---\n{document}{end}"))
}
