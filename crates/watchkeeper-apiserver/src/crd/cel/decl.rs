//! The CEL type of each part of a schema, with the maximum sizes of its values in a request.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{escape::escape, types::CelType};

/// The maximum size of a request to a Kubernetes server, in bytes.
pub(super) const REQUEST_BYTES: u64 = 3 * 1024 * 1024;
/// The maximum number of characters of an unlimited string: the maximum request size without the quotes.
const TEXT: u64 = REQUEST_BYTES - 2;

/// The declaration of a value.
#[derive(Debug)]
pub(crate) struct Decl {
    pub(super) ty: DeclType,
    /// The maximum number of characters, items or members of a value.
    pub(super) max_elements: u64,
    /// The length of the shortest JSON form of a value, in bytes.
    pub(super) min_bytes: u64,
}

#[derive(Debug)]
pub(super) enum DeclType {
    Dyn,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// A type of the Kubernetes libraries.
    Named(&'static str),
    List(Arc<Decl>),
    Map(Arc<Decl>),
    Object(BTreeMap<String, Arc<Decl>>),
}

impl Decl {
    fn new(ty: DeclType, max_elements: u64, min_bytes: u64) -> Arc<Self> {
        Arc::new(Self { ty, max_elements, min_bytes })
    }

    fn text() -> Arc<Self> {
        Self::new(DeclType::String, TEXT, 2)
    }

    /// Returns the declaration of a schema. `None` if its values are not visible to expressions.
    pub(crate) fn of(schema: &Value, is_resource: bool) -> Option<Arc<Self>> {
        let number =
            |name: &str| schema.get(name).and_then(Value::as_i64).map(|n| u64::try_from(n).unwrap_or(0));
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        if is_true(schema, "x-kubernetes-int-or-string") {
            let most = number("maxLength").map_or(TEXT, |most| most.saturating_mul(4));
            return Some(Self::new(DeclType::Dyn, most, 1));
        }
        match text("type") {
            "array" => {
                let items = nested(schema.get("items")?)?;
                let most = number("maxItems").unwrap_or((REQUEST_BYTES - 2) / (items.min_bytes + 1));
                Some(Self::new(DeclType::List(items), most, 2))
            }
            "object" => match schema.get("additionalProperties").filter(|of| of.is_object()) {
                Some(of) if !is_resource => {
                    let values = nested(of)?;
                    let most =
                        number("maxProperties").unwrap_or((REQUEST_BYTES - 2) / (values.min_bytes + 6));
                    Some(Self::new(DeclType::Map(values), most, 2))
                }
                _ => Some(object(schema, is_resource)),
            },
            "string" => Some(string(schema, text("format"), number("maxLength"))),
            "boolean" => Some(Self::new(DeclType::Bool, 0, 4)),
            "number" => Some(Self::new(DeclType::Double, 0, 1)),
            "integer" => Some(Self::new(DeclType::Int, 0, 1)),
            _ => None,
        }
    }

    /// Returns the type of the value in expressions.
    pub(super) fn cel_type(self: &Arc<Self>) -> CelType {
        match &self.ty {
            DeclType::Dyn => CelType::Dyn,
            DeclType::Bool => CelType::Bool,
            DeclType::Int => CelType::Int,
            DeclType::Double => CelType::Double,
            DeclType::String => CelType::String,
            DeclType::Bytes => CelType::Bytes,
            DeclType::Duration => CelType::Duration,
            DeclType::Timestamp => CelType::Timestamp,
            DeclType::Named(name) => CelType::Named(name),
            DeclType::List(items) => CelType::List(Arc::new(items.cel_type())),
            DeclType::Map(values) => CelType::Map(Arc::new(CelType::String), Arc::new(values.cel_type())),
            DeclType::Object(_) => CelType::Object(Arc::clone(self)),
        }
    }
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn nested(schema: &Value) -> Option<Arc<Decl>> {
    Decl::of(schema, is_true(schema, "x-kubernetes-embedded-resource"))
}

fn string(schema: &Value, format: &str, max_length: Option<u64>) -> Arc<Decl> {
    match format {
        "byte" => Decl::new(DeclType::Bytes, max_length.unwrap_or(TEXT), 2),
        // Sizes of the JSON forms, with their quotes.
        "duration" => Decl::new(DeclType::Duration, 32, 3),
        "date" => Decl::new(DeclType::Timestamp, 12, 12),
        "date-time" => Decl::new(DeclType::Timestamp, 32, 21),
        _ => {
            let allowed = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
            // A character has at most four bytes.
            let most = match (max_length, allowed) {
                (Some(most), _) => most.saturating_mul(4),
                (None, Some(allowed)) => {
                    allowed.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or(0)
                }
                (None, None) => TEXT,
            };
            Decl::new(DeclType::String, most, 2)
        }
    }
}

fn object(schema: &Value, is_resource: bool) -> Arc<Decl> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let replaces_metadata = is_resource && !declares_metadata(schema);
    let mut fields = BTreeMap::new();
    let mut min_bytes = 2;
    let mut add = |name: &str, field: Arc<Decl>, has_default: bool| {
        if required.contains(&name) && !has_default {
            min_bytes += name.len() as u64 + field.min_bytes + 4;
        }
        if let Some(escaped) = escape(name) {
            fields.insert(escaped, field);
        }
    };
    for (name, property) in properties.into_iter().flatten() {
        if replaces_metadata && matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            continue;
        }
        if let Some(field) = nested(property) {
            add(name, field, property.get("default").is_some_and(|default| !default.is_null()));
        }
    }
    if replaces_metadata {
        add("kind", Decl::text(), false);
        add("apiVersion", Decl::text(), false);
        let names = ["name", "generateName"].map(|name| (name.to_owned(), Decl::text()));
        add("metadata", Decl::new(DeclType::Object(names.into_iter().collect()), 0, 2), false);
    }
    Decl::new(DeclType::Object(fields), 0, min_bytes)
}

/// Returns whether a schema declares the types of its kind, version and names.
fn declares_metadata(schema: &Value) -> bool {
    [
        ("/properties/kind/type", "string"),
        ("/properties/apiVersion/type", "string"),
        ("/properties/metadata/type", "object"),
        ("/properties/metadata/properties/name/type", "string"),
        ("/properties/metadata/properties/generateName/type", "string"),
    ]
    .iter()
    .all(|(path, ty)| schema.pointer(path).and_then(Value::as_str) == Some(*ty))
}
