//! Objects for the tests of the store.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{Cached, CachedRef, Object, ObjectKey, ResourceVersion};

/// A config map named by its key.
pub(crate) fn object(key: &str) -> ConfigMap {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let mut object = ConfigMap::default();
    object.metadata.namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    object.metadata.name = Some(name.to_owned());
    object
}

/// Returns an object with this resourceVersion.
pub(crate) fn at(key: &str, resource_version: &str) -> Arc<ConfigMap> {
    let mut object = object(key);
    object.metadata.resource_version = Some(resource_version.to_owned());
    Arc::new(object)
}

/// Returns an object with labels.
pub(crate) fn labelled(key: &str, labels: &[(&str, &str)]) -> Arc<ConfigMap> {
    let mut object = object(key);
    object.metadata.labels =
        Some(labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
    Arc::new(object)
}

/// Returns an object with the label `tags`, whose values are separated by dots.
pub(crate) fn tagged(key: &str, tags: &str) -> Arc<ConfigMap> {
    labelled(key, &[("tags", tags)])
}

/// The index function for [`tagged`]: one value a tag.
pub(crate) fn tags(object: &ConfigMap) -> Vec<String> {
    let tags = label(object, "tags").unwrap_or_default();
    tags.split('.').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn label<'a>(object: &'a ConfigMap, name: &str) -> Option<&'a str> {
    object.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

pub(crate) fn version(text: &str) -> ResourceVersion {
    ResourceVersion::new(text).expect("a version")
}

/// An object in one of the forms in which a store returns objects.
pub(crate) trait Keyed {
    fn key(&self) -> ObjectKey;
}

impl<K: Object> Keyed for Arc<K> {
    fn key(&self) -> ObjectKey {
        self.object_key().expect("has a name")
    }
}

impl<K: Object> Keyed for CachedRef<'_, K> {
    fn key(&self) -> ObjectKey {
        self.object_key().expect("has a name")
    }
}

impl<K: Object> Keyed for Cached<K> {
    fn key(&self) -> ObjectKey {
        self.key().expect("has a name")
    }
}

/// Returns the keys of objects, sorted.
pub(crate) fn keys_of(objects: impl IntoIterator<Item: Keyed>) -> Vec<String> {
    let mut keys: Vec<String> = objects.into_iter().map(|object| object.key().to_string()).collect();
    keys.sort_unstable();
    keys
}

/// Returns the expected contents of an index, computed from the objects.
pub(crate) fn expected_index<K: Object>(
    objects: impl IntoIterator<Item: Deref<Target = Arc<K>>>,
    values: impl Fn(&K) -> Vec<String>,
) -> BTreeMap<String, Vec<String>> {
    let mut index: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for object in objects {
        let mut values = values(&object);
        values.sort_unstable();
        values.dedup();
        for value in values {
            index.entry(value).or_default().push(object.object_key().expect("has a name").to_string());
        }
    }
    for keys in index.values_mut() {
        keys.sort_unstable();
    }
    index
}
