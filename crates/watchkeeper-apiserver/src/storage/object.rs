//! Stored objects: the fields that selectors use, and the JSON that clients receive.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The content of a write, before the store assigns a version.
///
/// The JSON is kept without its first members (`apiVersion`, `kind`, `metadata.resourceVersion`), which are written in front
/// of it in responses. This has four advantages:
///
/// * Nothing is encoded under the store's lock.
/// * A deletion is sent under its own version without a change of the object.
/// * An item of a list has the same bytes as the object.
/// * A kind that is served in two versions with equal content is stored once.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// The namespace; empty for cluster-scoped objects.
    pub(crate) namespace: Box<str>,
    /// The name of the object.
    pub(crate) name: Box<str>,
    /// The uid of the object.
    pub(crate) uid: Box<str>,
    /// The labels, sorted.
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of selectable fields other than name and namespace.
    pub(crate) fields: Box<[(Box<str>, Box<str>)]>,
    /// The JSON after `{"metadata":{"resourceVersion":"…",`.
    rest: Bytes,
}

/// A stored object at one version. Shared between the store, its history and all readers.
#[derive(Debug)]
pub(crate) struct Object {
    /// The version of the write.
    pub(crate) version: u64,
    /// The content of the write.
    pub(crate) content: Content,
}

/// The error for a value that is not an object or has no name in its metadata.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an object without metadata.name cannot be stored")]
pub(crate) struct NotAnObject;

impl Content {
    /// Creates the content of `object`. `fields` are the values of selectable fields.
    pub(crate) fn new(object: &Value, fields: Box<[(Box<str>, Box<str>)]>) -> Result<Self, NotAnObject> {
        let members = object.as_object().ok_or(NotAnObject)?;
        let metadata = members.get("metadata").and_then(Value::as_object).ok_or(NotAnObject)?;
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().into();
        let name: Box<str> = text("name");
        if name.is_empty() {
            return Err(NotAnObject);
        }
        let mut labels: Vec<(Box<str>, Box<str>)> = metadata
            .get("labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect();
        labels.sort();
        Ok(Self {
            namespace: text("namespace"),
            name,
            uid: text("uid"),
            labels: labels.into(),
            fields,
            rest: encode_rest(members, metadata).into(),
        })
    }

    /// Returns the storage key: `namespace/name`, or `name` for cluster-scoped objects.
    pub(crate) fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let index = self.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        self.labels.get(index).map(|(_, value)| &**value)
    }

    /// Returns the value of a selectable field; empty if the object does not have it.
    pub(crate) fn field(&self, field: &str) -> &str {
        self.fields.iter().find(|(name, _)| **name == *field).map_or("", |(_, value)| value)
    }

    /// Returns the parsed metadata without its resourceVersion. The rest of the JSON is not parsed.
    pub(crate) fn metadata<T: DeserializeOwned>(&self) -> Option<T> {
        let mut bytes = Vec::with_capacity(self.rest.len() + 1);
        bytes.push(b'{');
        bytes.extend_from_slice(&self.rest);
        serde_json::Deserializer::from_slice(&bytes).into_iter().next()?.ok()
    }

    /// Returns the approximate memory of the content, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let pairs = self.labels.iter().chain(&*self.fields);
        let texts =
            pairs.map(|(name, value)| name.len() + value.len() + 2 * size_of::<Box<str>>()).sum::<usize>();
        self.rest.len() + self.namespace.len() + self.name.len() + self.uid.len() + texts
    }

    /// Returns the length of the JSON, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.rest.len() + 64
    }

    /// Writes the object at `version` without `apiVersion` and `kind`, like an item of a list of a built-in kind.
    pub(crate) fn write_item(&self, version: u64, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_members(version, out);
    }

    /// Writes the whole object at `version`.
    pub(crate) fn write(&self, api_version: &str, kind: &str, version: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"apiVersion\":\"");
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(b"\",\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",");
        self.write_members(version, out);
    }

    fn write_members(&self, version: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"metadata\":{\"resourceVersion\":\"");
        out.extend_from_slice(version.to_string().as_bytes());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(&self.rest);
    }

    /// Returns the object at `version` as a JSON value.
    pub(crate) fn to_value(&self, api_version: &str, kind: &str, version: u64) -> Value {
        let mut bytes = Vec::with_capacity(self.len() + 64);
        self.write(api_version, kind, version, &mut bytes);
        // Stored JSON always parses; the fallback is an empty object instead of a panic. The text is known to be UTF-8, so
        // strings are not validated again one by one.
        let text = String::from_utf8(bytes).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Object {
    /// Returns the object as a JSON value.
    pub(crate) fn to_value(&self, api_version: &str, kind: &str) -> Value {
        self.content.to_value(api_version, kind, self.version)
    }
}

/// Encodes the members of `metadata` after its resourceVersion, its closing brace, the other members and the last brace.
fn encode_rest(members: &Map<String, Value>, metadata: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut is_first = true;
    for (name, value) in metadata.iter().filter(|(name, _)| *name != "resourceVersion") {
        write_member(name, value, is_first, &mut out);
        is_first = false;
    }
    out.push(b'}');
    for (name, value) in members {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            write_member(name, value, false, &mut out);
        }
    }
    out.push(b'}');
    out.shrink_to_fit();
    out
}

fn write_member(name: &str, value: &Value, is_first: bool, out: &mut Vec<u8>) {
    if !is_first {
        out.push(b',');
    }
    // Writing strings, numbers and maps of strings to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_object_round_trips_with_its_resource_version() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v\n\"x"},
            "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "3", "labels": {"b": "2", "a": "1"}},
        });
        let content = Content::new(&object, Box::default()).unwrap();
        let mut expected = object.clone();
        expected["metadata"]["resourceVersion"] = "17".into();
        assert_eq!(content.to_value("v1", "ConfigMap", 17), expected);
        assert_eq!(Object { version: 17, content: content.clone() }.to_value("v1", "ConfigMap"), expected);
        assert_eq!(content.key(), "ns/a");
        assert_eq!(content.label("b"), Some("2"));
        assert_eq!(content.label("c"), None);

        let mut item = Vec::new();
        content.write_item(17, &mut item);
        let item: Value = serde_json::from_slice(&item).unwrap();
        expected.as_object_mut().unwrap().retain(|member, _| member != "apiVersion" && member != "kind");
        assert_eq!(item, expected);
    }

    #[test]
    fn metadata_and_fields_are_read_without_decoding_the_whole_object() {
        let metadata = json!({"name": "a", "labels": {"l": "1"}});
        let mut object = json!({"metadata": metadata, "spec": {"nodeName": "n"}});
        object["metadata"]["resourceVersion"] = "3".into();
        let fields = [("spec.nodeName", "n"), ("status.phase", "Running")];
        let fields = fields.map(|(field, value)| (field.into(), value.into()));
        let content = Content::new(&object, fields.into()).unwrap();
        assert_eq!(content.metadata(), Some(metadata));
        assert_eq!(
            ["status.phase", "spec.nodeName", "spec"].map(|field| content.field(field)),
            ["Running", "n", ""]
        );
    }

    #[test]
    fn an_object_without_a_name_is_rejected() {
        for value in [json!(1), json!({}), json!({"metadata": {}}), json!({"metadata": {"name": ""}})] {
            assert_eq!(Content::new(&value, Box::default()).unwrap_err(), NotAnObject);
        }
    }
}
