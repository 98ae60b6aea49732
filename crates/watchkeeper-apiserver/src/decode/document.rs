//! JSON and YAML, read with an eye on keys that are given twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, map::Entry};

/// Levels of nesting in a YAML body; deeper ones are refused. A level costs the reader kilobytes of stack. (JSON bodies
/// are bounded by their reader, at 128.)
const MAX_DEPTH: usize = 64;

/// A body, and the paths of the keys in it that were given before.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) duplicates: Vec<String>,
}

impl Document {
    /// Reads JSON. The last of several values under one key counts.
    pub(super) fn from_json(body: &[u8]) -> Result<Self, String> {
        // Text that is known to be UTF-8 is not looked at again string by string.
        let read = match std::str::from_utf8(body) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(body),
        };
        read.map_err(|error: serde_json::Error| {
            if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
        })
    }

    /// Reads YAML, one document of it.
    pub(super) fn from_yaml(body: &[u8]) -> Result<Self, String> {
        serde_saphyr::from_slice_with_options(body, yaml_options()).map_err(|error| {
            // What went wrong and where, without the excerpt of the body that follows it.
            error.to_string().lines().next().unwrap_or("not YAML").to_owned()
        })
    }
}

/// Returns how YAML is read: the last of several values under one key counts, and nesting is limited.
pub(super) fn yaml_options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
    let mut budget = serde_saphyr::Budget::default();
    budget.max_depth = MAX_DEPTH;
    options.budget = Some(budget);
    options
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

fn plain(value: impl Into<Value>) -> Document {
    Document { value: value.into(), duplicates: Vec::new() }
}

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(plain(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(plain(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(plain(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(plain(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(plain(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(plain(value))
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(plain(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Document, E> {
        Ok(plain(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        Document::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Document, A::Error> {
        let (mut items, mut duplicates) = (Vec::new(), Vec::new());
        while let Some(item) = access.next_element::<Document>()? {
            duplicates.extend(item.duplicates.iter().map(|path| join(&format!("[{}]", items.len()), path)));
            items.push(item.value);
        }
        Ok(Document { value: Value::Array(items), duplicates })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Document, A::Error> {
        let (mut members, mut duplicates) = (Map::new(), Vec::new());
        while let Some(key) = access.next_key::<String>()? {
            let member = access.next_value::<Document>()?;
            duplicates.extend(member.duplicates.iter().map(|path| join(&key, path)));
            match members.entry(key) {
                Entry::Vacant(place) => _ = place.insert(member.value),
                Entry::Occupied(mut place) => {
                    duplicates.push(place.key().clone());
                    place.insert(member.value);
                }
            }
        }
        Ok(Document { value: Value::Object(members), duplicates })
    }
}

fn join(outer: &str, path: &str) -> String {
    if path.starts_with('[') { format!("{outer}{path}") } else { format!("{outer}.{path}") }
}
