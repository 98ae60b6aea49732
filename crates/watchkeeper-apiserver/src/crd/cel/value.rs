//! Values of expressions: views of the JSON under validation, typed by its schema, and values that expressions create.

use std::{cmp::Ordering, collections::BTreeMap, ops::Deref, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use kube_cel::cel::{Value as Library, functions};
use serde_json::{Map as Members, Number, Value as Json};

use super::{
    super::{
        prune::META,
        structural::{Additional, JsonType, ListType, Structural},
    },
    escape::{escape, unescape},
    meter::EvalError,
};

/// A string, borrowed from the object under validation where possible.
#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

/// A value. Copies are cheap: lists, maps and strings are shared.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Arc<Value<'a>>>),
    /// A type, by its name.
    Type(&'static str),
    /// A value without a schema, which can only be compared.
    Opaque(&'a Json),
    /// A timestamp, a duration, or a value of the Kubernetes libraries.
    Library(Library),
}

#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Json { items: &'a [Json], of: Option<&'a Structural>, kind: &'a ListType },
    Owned(Arc<Vec<Value<'a>>>),
}

#[derive(Debug, Clone)]
pub(super) enum Map<'a> {
    /// An object with the properties of a schema. A resource also has kind, version and names.
    Object {
        members: &'a Members<String, Json>,
        schema: &'a Structural,
        is_resource: bool,
    },
    /// A map whose values have this schema.
    Dictionary {
        members: &'a Members<String, Json>,
        of: &'a Structural,
    },
    /// The metadata of a resource, of which only the names are visible to expressions.
    Metadata {
        members: &'a Members<String, Json>,
    },
    Owned(Arc<BTreeMap<Key<'a>, Value<'a>>>),
}

/// A key of a map. Numbers of equal value are the same key, whatever their type.
#[derive(Debug, Clone)]
pub(super) enum Key<'a> {
    Bool(bool),
    Number(i128),
    String(Text<'a>),
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Bool(_), _) | (Self::Number(_), Self::String(_)) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl<'a> Key<'a> {
    /// Returns the key of a value, if the value can be a key.
    pub(super) fn of(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Number(i128::from(*value)),
            Value::Uint(value) => Self::Number(i128::from(*value)),
            Value::Double(value) => Self::Number(whole(*value)?),
            Value::String(text) => Self::String(text.clone()),
            _ => return None,
        })
    }

    fn value(&self) -> Value<'a> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(value) => i64::try_from(*value)
                .map_or_else(|_| Value::Uint(u64::try_from(*value).unwrap_or(u64::MAX)), Value::Int),
            Self::String(text) => Value::String(text.clone()),
        }
    }
}

/// Returns a number without fraction as an integer.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() < 1e19).then_some(value as i128)
}

impl<'a> Value<'a> {
    pub(super) fn text(text: impl Into<Text<'a>>) -> Self {
        Self::String(text.into())
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(List::Owned(Arc::new(items)))
    }

    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Returns a view of JSON, typed by its schema.
    ///
    /// # Errors
    /// Returns an error of the expression if the value does not have the type of its schema.
    pub(super) fn view(json: &'a Json, schema: &'a Structural, is_resource: bool) -> Result<Self, EvalError> {
        let mismatch = |required: &str| EvalError::error(format!("invalid data, expected {required}"));
        if json.is_null() {
            return Ok(Self::Null);
        }
        if schema.is_int_or_string {
            return match json {
                Json::String(text) => Ok(Self::String(Text::Borrowed(text))),
                Json::Number(number) => match integer(number) {
                    Some(number) => Ok(Self::Int(number)),
                    None => mismatch("XIntOrString value to be either a string or integer"),
                },
                _ => mismatch("XIntOrString value to be either a string or integer"),
            };
        }
        match (schema.ty, json) {
            (Some(JsonType::Object), Json::Object(members)) => {
                Ok(Self::Map(Map::view(members, schema, is_resource)))
            }
            (Some(JsonType::Object), _) => mismatch("a map for the provided schema with type=object"),
            (Some(JsonType::Array), Json::Array(items)) => {
                Ok(Self::List(List::Json { items, of: schema.items.as_deref(), kind: &schema.list }))
            }
            (Some(JsonType::Array), _) => mismatch("an array for the provided schema with type=array"),
            (Some(JsonType::String), Json::String(text)) => formatted(text, &schema.format_name),
            (Some(JsonType::String), _) => mismatch("string"),
            (Some(JsonType::Number), Json::Number(number)) => {
                Ok(Self::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            (Some(JsonType::Number), _) => mismatch("float"),
            (Some(JsonType::Integer), Json::Number(number)) => match integer(number) {
                Some(number) => Ok(Self::Int(number)),
                None => mismatch("int"),
            },
            (Some(JsonType::Integer), _) => mismatch("int"),
            (Some(JsonType::Boolean), Json::Bool(value)) => Ok(Self::Bool(*value)),
            (Some(JsonType::Boolean), _) => mismatch("bool"),
            (None, _) => Ok(Self::Opaque(json)),
        }
    }

    /// Returns the name of the value's type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Library(Library::Timestamp(_)) => "google.protobuf.Timestamp",
            Self::Library(Library::Duration(_)) => "google.protobuf.Duration",
            Self::Library(Library::Opaque(value)) => match value.runtime_type_name() {
                name if name.ends_with("IP") => "net.IP",
                name if name.ends_with("CIDR") => "net.CIDR",
                name if name.ends_with("URL") => "kubernetes.URL",
                name if name.ends_with("Quantity") => "kubernetes.Quantity",
                name if name.ends_with("Semver") => "kubernetes.Semver",
                _ => "kubernetes.NamedFormat",
            },
            Self::Opaque(_) | Self::Library(_) => "unknown",
        }
    }

    /// Returns the size that costs are computed from: characters, bytes, items or members.
    pub(super) fn size(&self) -> u64 {
        let size = match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Optional(Some(value)) => return value.size(),
            _ => 1,
        };
        size as u64
    }
}

fn integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| i64::try_from(whole(number.as_f64()?)?).ok())
}

fn formatted<'a>(text: &'a str, format: &str) -> Result<Value<'a>, EvalError> {
    let shared = |text: &str| Arc::new(text.to_owned());
    let parsed = match format {
        "date-time" => functions::timestamp(shared(text)),
        "date" => functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))),
        "duration" => functions::duration(shared(text)),
        "byte" => {
            return match STANDARD.decode(text) {
                Ok(bytes) => Ok(Value::Bytes(bytes.into())),
                Err(_) => EvalError::error(format!("Invalid byte formatted string {text}")),
            };
        }
        _ => return Ok(Value::String(Text::Borrowed(text))),
    };
    match parsed {
        Ok(value) => Ok(Value::Library(value)),
        Err(_) => EvalError::error(format!("Invalid {format} formatted string {text}")),
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json { items, .. } => items.len(),
            Self::Owned(items) => items.len(),
        }
    }

    /// Returns an item. `None` if the list is shorter.
    pub(super) fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            Self::Json { items, of, .. } => items.get(index).map(|item| match of {
                Some(of) => Value::view(item, of, of.is_embedded),
                None => Ok(Value::Opaque(item)),
            }),
            Self::Owned(items) => items.get(index).cloned().map(Ok),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Map<'a> {
    fn view(members: &'a Members<String, Json>, schema: &'a Structural, is_resource: bool) -> Self {
        match &schema.additional {
            Additional::Of(of) if !is_resource && schema.properties.is_empty() => {
                Self::Dictionary { members, of }
            }
            _ => Self::Object { members, schema, is_resource },
        }
    }

    /// Returns the number of members, including those that are not visible to expressions.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Object { members, .. } | Self::Dictionary { members, .. } | Self::Metadata { members } => {
                members.len()
            }
            Self::Owned(entries) => entries.len(),
        }
    }

    /// Returns the member `name` of the underlying JSON, if it is visible to expressions.
    fn property(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            Self::Object { members, schema, is_resource } => {
                let member = members.get(name).filter(|member| !member.is_null())?;
                if *is_resource && META.contains(&name) {
                    return Some(Ok(match member {
                        Json::Object(members) if name == "metadata" => Value::Map(Map::Metadata { members }),
                        Json::String(text) => Value::String(Text::Borrowed(text)),
                        _ => return None,
                    }));
                }
                schema.properties.get(name).map(|of| Value::view(member, of, of.is_embedded))
            }
            Self::Dictionary { members, of } => {
                members.get(name).map(|member| Value::view(member, of, of.is_embedded))
            }
            Self::Metadata { members } => match (name, members.get(name)) {
                ("name" | "generateName", Some(Json::String(text))) => {
                    Some(Ok(Value::String(Text::Borrowed(text))))
                }
                _ => None,
            },
            Self::Owned(entries) => entries.get(&Key::String(name.to_owned().into())).cloned().map(Ok),
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &Value<'a>) -> Option<Result<Value<'a>, EvalError>> {
        match (self, key) {
            (Self::Object { .. } | Self::Metadata { .. }, Value::String(name)) => {
                self.property(&unescape(name)?)
            }
            (Self::Dictionary { .. }, Value::String(name)) => self.property(name),
            (Self::Owned(entries), key) => entries.get(&Key::of(key)?).cloned().map(Ok),
            _ => None,
        }
    }

    /// Returns the value of a field selection.
    pub(super) fn field(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            Self::Object { .. } | Self::Metadata { .. } => self.property(&unescape(name)?),
            Self::Dictionary { .. } | Self::Owned(_) => self.property(name),
        }
    }

    /// Returns the keys that are visible to expressions.
    pub(super) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Owned(entries) => entries.keys().map(Key::value).collect(),
            Self::Dictionary { members, .. } => {
                members.keys().map(|name| Value::String(Text::Borrowed(name))).collect()
            }
            Self::Object { members, schema, is_resource } => members
                .keys()
                .filter(|name| {
                    schema.properties.contains_key(*name) || (*is_resource && META.contains(&name.as_str()))
                })
                .map(|name| Value::text(escape(name).unwrap_or_else(|| name.clone())))
                .collect(),
            Self::Metadata { members } => members
                .keys()
                .filter(|name| matches!(name.as_str(), "name" | "generateName"))
                .map(|name| Value::String(Text::Borrowed(name)))
                .collect(),
        }
    }

    /// Returns the underlying JSON.
    pub(super) fn members(&self) -> Option<&'a Members<String, Json>> {
        match self {
            Self::Object { members, .. } | Self::Dictionary { members, .. } | Self::Metadata { members } => {
                Some(members)
            }
            Self::Owned(_) => None,
        }
    }
}
