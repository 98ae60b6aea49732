//! Comparison of objects by their JSON content.

use serde_json::{Map, Value};

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
