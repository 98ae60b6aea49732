//! JSON as rules see it: typed by the schema, with names CEL can write.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use kube_cel::cel::{
    Value as Cel, functions,
    objects::{Key, Map},
};
use serde_json::{Number, Value};

use super::super::{
    prune::META,
    structural::{Additional, Structural, Ty},
};

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name of a member as rules write it.
pub(super) fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// A value for CEL. Rules see the members a schema names, and of a whole object its kind and name.
pub(super) fn to_cel(value: &Value, schema: Option<&Structural>, is_root: bool) -> Cel {
    let Some(schema) = schema else { return plain(value) };
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is_true) => Cel::Bool(*is_true),
        Value::Number(number) => self::number(number, schema.ty),
        Value::String(text) => self::text(text, schema),
        Value::Array(items) => {
            let of = schema.items.as_deref();
            Cel::List(Arc::new(items.iter().map(|item| to_cel(item, of, false)).collect()))
        }
        Value::Object(members) => {
            let is_resource = is_root || schema.is_embedded;
            let seen = members.iter().filter_map(|(name, member)| {
                if is_resource && META.contains(&name.as_str()) {
                    return Some((name.clone(), meta(name, member)));
                }
                if let Some(property) = schema.properties.get(name) {
                    return Some((escape(name), to_cel(member, Some(property), false)));
                }
                match &schema.additional {
                    Additional::Of(of) => Some((name.clone(), to_cel(member, Some(of), false))),
                    Additional::Any => Some((name.clone(), plain(member))),
                    Additional::None => None,
                }
            });
            map(seen)
        }
    }
}

fn map(members: impl Iterator<Item = (String, Cel)>) -> Cel {
    let members: HashMap<Key, Cel> =
        members.map(|(name, member)| (Key::String(Arc::new(name)), member)).collect();
    Cel::Map(Map { map: Arc::new(members) })
}

fn meta(name: &str, value: &Value) -> Cel {
    match value {
        Value::Object(members) if name == "metadata" => {
            let shown = members.iter().filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
            map(shown.map(|(name, member)| (name.clone(), plain(member))))
        }
        _ => plain(value),
    }
}

fn number(number: &Number, ty: Option<Ty>) -> Cel {
    match (ty, number.as_i64()) {
        (Some(Ty::Number), _) | (_, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        (_, Some(whole)) => Cel::Int(whole),
    }
}

fn text(text: &str, schema: &Structural) -> Cel {
    let same = || Cel::String(Arc::new(text.to_owned()));
    match schema.format_name.as_str() {
        "date-time" => functions::timestamp(Arc::new(text.to_owned())).unwrap_or_else(|_| same()),
        "date" => functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))).unwrap_or_else(|_| same()),
        "duration" => functions::duration(Arc::new(text.to_owned())).unwrap_or_else(|_| same()),
        "byte" => STANDARD.decode(text).map_or_else(|_| same(), |bytes| Cel::Bytes(Arc::new(bytes))),
        _ => same(),
    }
}

fn plain(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is_true) => Cel::Bool(*is_true),
        Value::Number(number) => self::number(number, None),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(members) => map(members.iter().map(|(name, member)| (name.clone(), plain(member)))),
    }
}

/// The number of items of the largest list or map in a value.
pub(super) fn largest(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(largest).max().unwrap_or(0).max(items.len() as u64),
        Value::Object(members) => members.values().map(largest).max().unwrap_or(0).max(members.len() as u64),
        _ => 0,
    }
}
