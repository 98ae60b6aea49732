//! Comparison of objects by their content.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::Protobuf;

/// The encoding of a received object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// A JSON document.
    Json,
    /// A message of the type of this decoder.
    Protobuf(Protobuf),
}

/// The bytes of a received object with their encoding, for comparison with another object.
#[derive(Debug, Clone)]
pub struct Content {
    bytes: Bytes,
    encoding: Encoding,
}

impl Content {
    /// Creates a content from the bytes of an object.
    pub fn new(bytes: Bytes, encoding: Encoding) -> Self {
        Self { bytes, encoding }
    }

    /// Returns whether both objects have the same content, whatever their encodings.
    ///
    /// As in [`is_same_content`], `apiVersion` and `kind` are ignored. If an object is protobuf, empty members count as
    /// absent, because the encodings omit different ones.
    pub fn is_same(&self, other: &Self) -> bool {
        if (self.encoding, other.encoding) == (Encoding::Json, Encoding::Json) {
            return is_same_content(&self.bytes, &other.bytes);
        }
        let content = |content: &Self| {
            let mut object = match content.encoding {
                Encoding::Json => serde_json::from_slice(&content.bytes).ok(),
                Encoding::Protobuf(decoder) => decoder.content(&content.bytes),
            }?;
            object.remove("apiVersion");
            object.remove("kind");
            let mut object = Value::Object(object);
            remove_empty(&mut object);
            Some(object)
        };
        (self.encoding == other.encoding && self.bytes == other.bytes)
            || content(self).zip(content(other)).is_some_and(|(one, other)| one == other)
    }
}

/// Removes empty members of all objects in `value`.
fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            remove_empty(value);
            !is_empty(value)
        }),
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Returns whether two JSON objects have the same content, regardless of the order of their members.
///
/// The top-level `apiVersion` and `kind` are ignored: servers omit them from the items of a list and include
/// them in events. Bytes that are not a JSON object have the same content only if they are equal.
///
/// ```
/// use watchkeeper_client::decode::is_same_content;
///
/// let event = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}"#;
/// assert!(is_same_content(event, br#"{"data":{"k":"1"},"metadata":{"name":"a"}}"#));
/// assert!(!is_same_content(event, br#"{"data":{"k":"2"},"metadata":{"name":"a"}}"#));
/// ```
pub fn is_same_content(a: &[u8], b: &[u8]) -> bool {
    let content = |bytes| {
        let mut object: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        object.remove("apiVersion");
        object.remove("kind");
        Some(object)
    };
    a == b || content(a).zip(content(b)).is_some_and(|(a, b)| a == b)
}
