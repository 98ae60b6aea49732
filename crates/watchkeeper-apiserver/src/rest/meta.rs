//! The metadata fields that belong to the server.

use std::time::SystemTime;

use serde_json::{Map, Value};

use crate::status::ApiError;

/// The characters of generated names, without vowels so that no words appear.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The length of the generated suffix.
const SUFFIX: usize = 5;
/// The longest prefix of a generated name.
const PREFIX_MAX: usize = 63 - SUFFIX;

/// Returns the metadata of an object, adding it if it is absent.
pub(super) fn metadata(object: &mut Value) -> Result<&mut Map<String, Value>, ApiError> {
    let not_object = || ApiError::bad_request("metadata must be an object");
    let members = object.as_object_mut().ok_or_else(not_object)?;
    let metadata = members.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().ok_or_else(not_object)
}

/// Returns a string member of the metadata.
pub(super) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(member))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns whether the object is being deleted.
pub(super) fn is_being_deleted(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Returns whether the object has finalizers.
pub(super) fn has_finalizers(object: &Value) -> bool {
    let is_filled =
        |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let is_namespace = object.get("kind").is_some_and(|kind| kind == "Namespace")
        && object.get("apiVersion").is_some_and(|version| version == "v1");
    is_filled(object.pointer("/metadata/finalizers"))
        || (is_namespace && is_filled(object.pointer("/spec/finalizers")))
}

/// Removes empty members, which are never written.
pub(super) fn drop_empty(metadata: &mut Map<String, Value>) {
    const OMITTED: &[&str] = &["annotations", "labels", "finalizers", "ownerReferences", "managedFields"];
    metadata.retain(|name, value| match value {
        Value::Null => false,
        Value::Object(members) => !(members.is_empty() && OMITTED.contains(&name.as_str())),
        Value::Array(items) => !(items.is_empty() && OMITTED.contains(&name.as_str())),
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => !(name == "generation" && number.as_i64() == Some(0)),
        Value::Bool(_) => true,
    });
}

/// Returns the resourceVersion that a client sent with an object; zero if it sent none.
pub(super) fn sent_version(object: &Value) -> Result<u64, ApiError> {
    match text(object, "resourceVersion") {
        "" => Ok(0),
        text => text.parse().map_err(|_| super::errors::unreadable_version(text)),
    }
}

/// Formats a date as in objects.
pub(super) fn timestamp(time: SystemTime) -> String {
    let timestamp = jiff::Timestamp::try_from(time).unwrap_or_default();
    jiff::Timestamp::from_second(timestamp.as_second()).unwrap_or_default().to_string()
}

/// Returns a random uid.
pub(super) fn uid(random: &mut fastrand::Rng) -> String {
    // UUID version 4, variant 1.
    let bits = random.u128(..) & !(0xf000_u128 << 64) & !(0xc000_u128 << 48)
        | (0x4000_u128 << 64)
        | (0x8000_u128 << 48);
    let hex = format!("{bits:032x}");
    [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)].map(|(start, end)| &hex[start..end]).join("-")
}

/// Returns a random name with `prefix`.
pub(super) fn generated_name(prefix: &str, random: &mut fastrand::Rng) -> String {
    let mut cut = prefix.len().min(PREFIX_MAX);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let suffix = (0..SUFFIX).map(|_| char::from(ALPHABET[random.usize(..ALPHABET.len())]));
    prefix[..cut].chars().chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn uids_are_version_4_uuids() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100 {
            let uid = uid(&mut random);
            assert_eq!(uid.len(), 36);
            assert_eq!(&uid[14..15], "4", "{uid}");
            assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"), "{uid}");
        }
    }

    #[test]
    fn generated_names_have_at_most_63_bytes() {
        let mut random = fastrand::Rng::with_seed(1);
        assert_eq!(generated_name("pre-", &mut random).len(), 9);
        assert_eq!(generated_name(&"x".repeat(300), &mut random).len(), 63);
        assert!(generated_name(&"ä".repeat(200), &mut random).len() <= 63);
    }

    #[test]
    fn timestamps_have_whole_seconds() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(timestamp(time), "1970-01-01T00:00:01Z");
    }
}
