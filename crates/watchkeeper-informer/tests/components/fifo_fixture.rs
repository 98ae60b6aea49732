//! Objects small enough to read in a failure.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use watchkeeper_informer::Cached;

/// `space/NAME` in its first incarnation, at a version.
pub(crate) fn object(name: &str, version: u64) -> Cached<ConfigMap> {
    incarnation(name, "1", version)
}

/// `space/NAME` with a uid, at a version.
pub(crate) fn incarnation(name: &str, uid: &str, version: u64) -> Cached<ConfigMap> {
    let metadata = ObjectMeta {
        namespace: Some("space".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(format!("{name}-{uid}")),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    };
    Cached::from(ConfigMap { metadata, ..ConfigMap::default() })
}

/// Returns `NAME@VERSION` of an object.
pub(crate) fn label(object: &Cached<ConfigMap>) -> String {
    let metadata = object.metadata();
    format!("{}@{}", metadata.name(), metadata.resource_version().unwrap_or_default())
}
