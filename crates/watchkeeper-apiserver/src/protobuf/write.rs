//! Encoding of JSON to protobuf.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    Envelope,
    wire::{put_bytes, put_fixed64, put_number},
};
use crate::schema::{Scalar, Shape, Struct, TypeRef};

/// Encodes an object of type `ty` as a message, without envelope. Unknown members are dropped.
pub(crate) fn write(object: &Value, ty: &TypeRef) -> Vec<u8> {
    let mut out = Vec::new();
    if let (Value::Object(members), Shape::Struct(of)) = (object, ty.shape()) {
        write_struct(&mut out, members, of, ty, &[]);
    }
    out
}

/// Encodes a list of objects of type `ty` as a message, without envelope.
pub(crate) fn list<'a>(
    metadata: &Value,
    items: impl IntoIterator<Item = &'a Value>,
    ty: &TypeRef,
) -> Vec<u8> {
    let mut out = Vec::new();
    let of = TypeRef::builtin_named("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
    put_bytes(&mut out, 1, &write(metadata, &of));
    for item in items {
        put_bytes(&mut out, 2, &write(item, ty));
    }
    out
}

/// Encodes a watch frame: its length, then an event with an object in its envelope. The event itself has no envelope.
pub(crate) fn frame(event: &str, object: &Envelope<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    put_bytes(&mut raw, 1, &object.seal());
    let mut message = Vec::with_capacity(raw.len() + 16);
    put_bytes(&mut message, 1, event.as_bytes());
    put_bytes(&mut message, 2, &raw);
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(message.len() + 4);
    out.extend(length.to_be_bytes());
    out.extend(message);
    out
}

/// Writes the members directly in the message `outer`, and those below it as nested messages.
fn write_struct(out: &mut Vec<u8>, members: &Map<String, Value>, of: &Struct, ty: &TypeRef, outer: &[u32]) {
    let mut inner: Vec<u32> = Vec::new();
    for field in &of.fields {
        let Some(value) = members.get(&*field.name).filter(|value| !value.is_null()) else { continue };
        let path = field.proto.as_ref().and_then(|proto| proto.path.strip_prefix(outer));
        match path {
            Some([number]) => write_member(out, *number, value, &ty.at(field.ty)),
            Some([number, ..]) if !inner.contains(number) => inner.push(*number),
            _ => {}
        }
    }
    for number in inner {
        let mut message = Vec::new();
        let path: Vec<u32> = outer.iter().copied().chain([number]).collect();
        write_struct(&mut message, members, of, ty, &path);
        put_bytes(out, number, &message);
    }
}

fn write_member(out: &mut Vec<u8>, number: u32, value: &Value, ty: &TypeRef) {
    match (value, ty.shape()) {
        (Value::Array(items), Shape::List { item, .. }) => {
            let item = ty.at(*item);
            for value in items {
                write_value(out, number, value, &item);
            }
        }
        (Value::Object(entries), Shape::Map { value: of, .. }) => {
            let of = ty.at(*of);
            for (key, value) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                match (value, of.shape()) {
                    (Value::Array(_), Shape::List { .. }) => {
                        let mut items = Vec::new();
                        write_member(&mut items, 1, value, &of);
                        put_bytes(&mut entry, 2, &items);
                    }
                    _ => write_value(&mut entry, 2, value, &of),
                }
                put_bytes(out, number, &entry);
            }
        }
        _ => write_value(out, number, value, ty),
    }
}

fn write_value(out: &mut Vec<u8>, number: u32, value: &Value, ty: &TypeRef) {
    match ty.shape() {
        Shape::Struct(_) => put_bytes(out, number, &write(value, ty)),
        Shape::Scalar(scalar) => write_scalar(out, number, value, *scalar),
        Shape::Any => put_bytes(out, number, &any(value, ty)),
        Shape::List { .. } | Shape::Map { .. } => {}
    }
}

/// Writes a scalar. A value of another type is skipped.
#[expect(clippy::cast_sign_loss, reason = "negative numbers travel as two's complement")]
fn write_scalar(out: &mut Vec<u8>, number: u32, value: &Value, scalar: Scalar) {
    match (scalar, value) {
        (Scalar::String, Value::String(text)) => put_bytes(out, number, text.as_bytes()),
        (Scalar::Bytes, Value::String(text)) => {
            put_bytes(out, number, &STANDARD.decode(text).unwrap_or_default());
        }
        (Scalar::Int32 | Scalar::Int64, Value::Number(value)) => {
            put_number(out, number, value.as_i64().unwrap_or_default() as u64);
        }
        (Scalar::Boolean, Value::Bool(value)) => put_number(out, number, u64::from(*value)),
        (Scalar::Number, Value::Number(value)) => {
            put_fixed64(out, number, value.as_f64().unwrap_or_default().to_bits());
        }
        (Scalar::IntOrString, Value::Number(value)) => {
            let mut message = Vec::new();
            put_number(&mut message, 1, 0);
            put_number(&mut message, 2, value.as_i64().unwrap_or_default() as u64);
            put_bytes(out, number, &message);
        }
        (Scalar::IntOrString, Value::String(text)) => {
            let mut message = Vec::new();
            put_number(&mut message, 1, 1);
            put_bytes(&mut message, 3, text.as_bytes());
            put_bytes(out, number, &message);
        }
        (Scalar::Quantity, Value::String(text)) => {
            let mut message = Vec::new();
            put_bytes(&mut message, 1, text.as_bytes());
            put_bytes(out, number, &message);
        }
        (Scalar::Time | Scalar::MicroTime, Value::String(text)) => {
            let mut message = Vec::new();
            if let Ok(time) = text.parse::<Timestamp>() {
                put_number(&mut message, 1, time.as_second() as u64);
                put_number(&mut message, 2, i64::from(time.subsec_nanosecond()) as u64);
            }
            put_bytes(out, number, &message);
        }
        _ => {}
    }
}

/// Encodes raw JSON, or one of the union types of custom resource definitions.
fn any(value: &Value, ty: &TypeRef) -> Vec<u8> {
    let schema = || ty.named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    let mut out = Vec::new();
    match (ty.name().and_then(|name| name.split_once(".JSONSchemaPropsOr")).map(|(_, rest)| rest), value) {
        (None, _) => put_bytes(&mut out, 1, value.to_string().as_bytes()),
        (Some("Bool"), Value::Bool(allows)) => put_number(&mut out, 1, u64::from(*allows)),
        (Some("Bool"), _) => {
            put_number(&mut out, 1, 1);
            put_bytes(&mut out, 2, &write(value, &schema()));
        }
        (Some(rest), Value::Array(items)) => {
            for item in items {
                match item.as_str().filter(|_| rest == "StringArray") {
                    Some(text) => put_bytes(&mut out, 2, text.as_bytes()),
                    None => put_bytes(&mut out, 2, &write(item, &schema())),
                }
            }
        }
        (Some(_), _) => put_bytes(&mut out, 1, &write(value, &schema())),
    }
    out
}
