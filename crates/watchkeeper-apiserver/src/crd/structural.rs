//! The schema of a custom resource, parsed once.

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::Value;

use super::{
    allowed::AllowedValues,
    cel::ValidationRule,
    format::Format,
    pattern::{Pattern, Patterns},
};

/// A JSON type, as named in schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonType {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A JSON string.
    String,
    /// A JSON integer.
    Integer,
    /// An integer or a float.
    Number,
    /// A JSON boolean.
    Boolean,
}

impl JsonType {
    /// Returns the type with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// Returns the name of the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The list type: the identity of list items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ListType {
    /// Items have no identity; the list is atomic.
    #[default]
    Atomic,
    /// The value identifies an item.
    Set,
    /// The values of these members identify an item.
    Map(Vec<String>),
}

/// The members of an object besides its properties (`additionalProperties`).
#[derive(Debug, Default)]
pub(crate) enum Additional {
    /// The schema declares no other members.
    #[default]
    None,
    /// Other members may have any value.
    Any,
    /// Other members have this schema.
    Of(Box<Structural>),
}

/// A schema, or a part of one.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of the schema language")]
pub(crate) struct Structural {
    pub(crate) ty: Option<JsonType>,
    pub(crate) format: Option<Format>,
    /// The format as written, for the type of the field.
    pub(crate) format_name: String,
    pub(crate) is_nullable: bool,
    pub(crate) is_int_or_string: bool,
    pub(crate) keeps_unknown: bool,
    pub(crate) is_embedded: bool,
    pub(crate) is_atomic_map: bool,
    pub(crate) list: ListType,
    pub(crate) properties: BTreeMap<String, Structural>,
    /// The names of the properties with defaults, which may be few among many.
    defaulted: Vec<String>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Structural>>,
    pub(crate) default: Option<Value>,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Option<AllowedValues>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) bounds: Bounds,
    pub(crate) all_of: Vec<Structural>,
    pub(crate) any_of: Vec<Structural>,
    pub(crate) one_of: Vec<Structural>,
    pub(crate) not: Option<Box<Structural>>,
    pub(crate) rules: Vec<ValidationRule>,
    /// Whether the schema or a nested schema has rules.
    holds_rules: bool,
}

/// The limits on values, lengths and counts.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) excludes_minimum: bool,
    pub(crate) excludes_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
}

impl Structural {
    /// Parses a schema. Unparsable parts are ignored, because a definition is validated before it is served.
    pub(crate) fn read(schema: &Value) -> Self {
        Self::read_with(schema, &RefCell::default())
    }

    fn read_with(schema: &Value, patterns: &RefCell<Patterns>) -> Self {
        let read = |schema: &Value| Self::read_with(schema, patterns);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        let texts = |name: &str| -> Vec<String> {
            let items = schema.get(name).and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let schemas = |name: &str| -> Vec<Self> {
            schema.get(name).and_then(Value::as_array).into_iter().flatten().map(read).collect()
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties: BTreeMap<String, Self> =
            properties.into_iter().flatten().map(|(name, property)| (name.clone(), read(property))).collect();
        let ty = JsonType::named(text("type"));
        let mut read = Self {
            ty,
            format: Format::for_type(ty, text("format")),
            format_name: text("format").to_owned(),
            is_nullable: flag("nullable"),
            is_int_or_string: flag("x-kubernetes-int-or-string"),
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            is_embedded: flag("x-kubernetes-embedded-resource"),
            is_atomic_map: text("x-kubernetes-map-type") == "atomic",
            list: match text("x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => ListType::Map(texts("x-kubernetes-list-map-keys")),
                _ => ListType::Atomic,
            },
            defaulted: properties
                .iter()
                .filter(|(_, property)| property.default.is_some())
                .map(|(name, _)| name.clone())
                .collect(),
            properties,
            additional: match schema.get("additionalProperties") {
                Some(Value::Bool(true)) => Additional::Any,
                Some(of @ Value::Object(_)) => Additional::Of(Box::new(read(of))),
                _ => Additional::None,
            },
            items: schema.get("items").filter(|items| items.is_object()).map(|items| Box::new(read(items))),
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            required: texts("required"),
            allowed: schema
                .get("enum")
                .and_then(Value::as_array)
                .filter(|values| !values.is_empty())
                .map(|values| AllowedValues::new(values)),
            pattern: Some(text("pattern"))
                .filter(|pattern| !pattern.is_empty())
                .and_then(|pattern| patterns.borrow_mut().compile(pattern).ok()),
            bounds: Bounds::read(schema),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: schema.get("not").filter(|not| not.is_object()).map(|not| Box::new(read(not))),
            rules: ValidationRule::read_all(schema),
            holds_rules: false,
        };
        read.holds_rules = !read.rules.is_empty() || read.parts().any(Self::has_rules);
        read
    }

    /// Returns the schemas of nested values, and those in `allOf`.
    fn parts(&self) -> impl Iterator<Item = &Self> {
        let additional = match &self.additional {
            Additional::Of(schema) => Some(&**schema),
            Additional::None | Additional::Any => None,
        };
        self.properties.values().chain(self.items.as_deref()).chain(additional).chain(&self.all_of)
    }

    /// Returns the properties with defaults.
    pub(crate) fn defaulted(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.defaulted.iter().filter_map(|name| Some((name.as_str(), self.properties.get(name)?)))
    }

    /// Returns the schema of a member, if it is declared.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Additional::Of(schema) => Some(schema),
            Additional::None | Additional::Any => None,
        })
    }

    /// Returns whether the schema or a nested schema has rules.
    pub(crate) fn has_rules(&self) -> bool {
        self.holds_rules
    }
}

impl Bounds {
    fn read(schema: &Value) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
        Self {
            minimum: number("minimum"),
            maximum: number("maximum"),
            excludes_minimum: flag("exclusiveMinimum"),
            excludes_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
        }
    }
}
