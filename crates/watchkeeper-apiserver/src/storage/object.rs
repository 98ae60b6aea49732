//! An object as it is stored: what selectors ask about, and the JSON that readers are sent.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a write stores, before the store has given it a version.
///
/// The JSON is kept without its first members (`apiVersion`, `kind`, `metadata.resourceVersion`): those are written in
/// front of it when it is sent. So nothing is encoded under the store's lock, a deletion is announced under its own
/// version without touching the object, an item of a list is the same bytes as the object, and a kind served in two
/// versions that differ in name only is stored once.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// Its namespace; empty for objects of the cluster.
    pub(crate) namespace: Box<str>,
    /// Its name.
    pub(crate) name: Box<str>,
    /// Its uid.
    pub(crate) uid: Box<str>,
    /// Its labels, sorted.
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// Fields that selectors may ask about beside name and namespace.
    pub(crate) fields: Box<[(Box<str>, Box<str>)]>,
    /// Everything after `{"metadata":{"resourceVersion":"…",`.
    rest: Bytes,
}

/// A stored object of one version. Shared between the store, its history and every reader.
#[derive(Debug)]
pub(crate) struct Object {
    /// The version it was written with.
    pub(crate) version: u64,
    /// What was written.
    pub(crate) content: Content,
}

/// A value that is no object, or has no name in its metadata.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an object without metadata.name cannot be stored")]
pub(crate) struct NotAnObject;

impl Content {
    /// What is stored of `object`; `fields` is what selectors may ask about.
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

    /// The key it is stored under: `namespace/name`, or `name` for objects of the cluster.
    pub(crate) fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let place = self.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        self.labels.get(place).map(|(_, value)| &**value)
    }

    /// The value of a field that selectors may ask about; empty if the object does not have it.
    pub(crate) fn field(&self, field: &str) -> &str {
        self.fields.iter().find(|(name, _)| **name == *field).map_or("", |(_, value)| value)
    }

    /// The metadata without its resourceVersion. What comes after it is not looked at.
    pub(crate) fn metadata<T: DeserializeOwned>(&self) -> Option<T> {
        let mut bytes = Vec::with_capacity(self.rest.len() + 1);
        bytes.push(b'{');
        bytes.extend_from_slice(&self.rest);
        serde_json::Deserializer::from_slice(&bytes).into_iter().next()?.ok()
    }

    /// Returns about how many bytes of memory the content takes.
    pub(crate) fn held_bytes(&self) -> usize {
        let pairs = self.labels.iter().chain(&*self.fields);
        let texts =
            pairs.map(|(name, value)| name.len() + value.len() + 2 * size_of::<Box<str>>()).sum::<usize>();
        self.rest.len() + self.namespace.len() + self.name.len() + self.uid.len() + texts
    }

    /// Bytes it takes when written out.
    pub(crate) fn len(&self) -> usize {
        self.rest.len() + 64
    }

    /// Writes the object as of `version` without `apiVersion` and `kind`, as an item of a list of a built-in kind is.
    pub(crate) fn write_item(&self, version: u64, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_members(version, out);
    }

    /// Writes the whole object as of `version`.
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

    /// The object as of `version`, to be changed.
    pub(crate) fn to_value(&self, api_version: &str, kind: &str, version: u64) -> Value {
        let mut bytes = Vec::with_capacity(self.len() + 64);
        self.write(api_version, kind, version, &mut bytes);
        // What was written by us reads back; were it not so, an empty object is answered rather than a panic. Text that is
        // known to be UTF-8 is not looked at again string by string.
        let text = String::from_utf8(bytes).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Object {
    /// The object, to be changed.
    pub(crate) fn to_value(&self, api_version: &str, kind: &str) -> Value {
        self.content.to_value(api_version, kind, self.version)
    }
}

/// The members of `metadata` after its resourceVersion, the brace that closes it, the other members and the last brace.
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
    // Writing a value of strings, numbers and maps of strings to memory has no way to fail.
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_reads_back_as_it_was_written_with_its_version() {
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
    fn metadata_and_fields_are_read_without_the_rest_of_the_object() {
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
    fn what_has_no_name_is_refused() {
        for value in [json!(1), json!({}), json!({"metadata": {}}), json!({"metadata": {"name": ""}})] {
            assert_eq!(Content::new(&value, Box::default()).unwrap_err(), NotAnObject);
        }
    }
}
