//! Decoding of protobuf to JSON.

use std::cell::Cell;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::wire::{Fields, Wire, WireError};
use crate::schema::{Field, Scalar, Shape, TypeRef};

/// The maximum depth of nested messages, more than the deepest schema of a custom resource needs.
const MAX_DEPTH: usize = 128;

/// The maximum memory of the values of one message, in bytes, as estimated while reading.
const MAX_WEIGHT: usize = 128 * 1024 * 1024;

/// The memory of an object, whatever its content: defaults may be added to an empty one.
const OBJECT_WEIGHT: usize = 640;

/// The current depth, and the memory of the values read so far.
#[derive(Clone, Copy)]
struct Limits<'a> {
    depth: usize,
    weight: &'a Cell<usize>,
}

impl Limits<'_> {
    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn check_depth(self) -> Result<(), WireError> {
        if self.depth > MAX_DEPTH { Err(WireError::Depth) } else { Ok(()) }
    }

    /// Counts the memory of a value.
    fn charge(self, bytes: usize) -> Result<(), WireError> {
        self.weight.set(self.weight.get().saturating_add(bytes));
        if self.weight.get() > MAX_WEIGHT { Err(WireError::TooLarge) } else { Ok(()) }
    }
}

/// Decodes a message of type `ty` as JSON. Unknown fields are skipped, as in Go.
///
/// # Errors
/// Returns an error if the bytes are not protobuf, or not of this type.
pub(crate) fn read(message: &[u8], ty: &TypeRef) -> Result<Value, WireError> {
    let mut members = Map::new();
    let weight = Cell::new(0);
    read_struct(message, ty, &[], &mut members, Limits { depth: 0, weight: &weight })?;
    Ok(Value::Object(members))
}

/// Decodes the fields of a message. `outer` are the numbers of the enclosing messages that JSON does not have.
fn read_struct(
    message: &[u8],
    ty: &TypeRef,
    outer: &[u32],
    out: &mut Map<String, Value>,
    limits: Limits<'_>,
) -> Result<(), WireError> {
    limits.check_depth()?;
    let Shape::Struct(members) = ty.shape() else { return Ok(()) };
    for member in Fields::new(message) {
        let (number, value) = member?;
        let mut below = members.fields.iter().filter_map(|field| Some((field, below(field, outer, number)?)));
        match below.next() {
            Some((field, [])) => read_member(value, number, field, &ty.at(field.ty), out, limits)?,
            Some(_) => {
                let inner: Vec<u32> = outer.iter().copied().chain([number]).collect();
                read_struct(value.bytes(number)?, ty, &inner, out, limits.below())?;
            }
            None => {}
        }
    }
    Ok(())
}

/// Returns the numbers that lead to `field` from the message `number` within the messages `outer`. None if the field is
/// elsewhere.
fn below<'a>(field: &'a Field, outer: &[u32], number: u32) -> Option<&'a [u32]> {
    field
        .proto
        .as_ref()?
        .path
        .strip_prefix(outer)?
        .split_first()
        .filter(|(first, _)| **first == number)
        .map(|(_, rest)| rest)
}

fn read_member(
    value: Wire<'_>,
    number: u32,
    field: &Field,
    ty: &TypeRef,
    out: &mut Map<String, Value>,
    limits: Limits<'_>,
) -> Result<(), WireError> {
    match ty.shape() {
        Shape::List { item, .. } => {
            let item = ty.at(*item);
            let items = out.entry(&*field.name).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = items else { return Ok(()) };
            match (value, item.shape()) {
                (Wire::Bytes(mut packed), Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Boolean)) => {
                    while !packed.is_empty() {
                        let one = Wire::Varint(super::wire::varint(&mut packed)?);
                        items.push(read_value(one, number, &item, limits)?);
                    }
                }
                _ => items.push(read_value(value, number, &item, limits)?),
            }
        }
        Shape::Map { value: of, .. } => {
            limits.charge(OBJECT_WEIGHT / 8)?;
            let (key, read) = read_entry(value.bytes(number)?, &ty.at(*of), limits)?;
            let entries = out.entry(&*field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(entries) = entries {
                entries.insert(key, read);
            }
        }
        _ => {
            let read = read_value(value, number, ty, limits)?;
            out.insert(field.name.as_ref().to_owned(), read);
        }
    }
    Ok(())
}

/// Decodes an entry of a map: a message with the key and the value. Lists as values are wrapped in another message.
fn read_entry(entry: &[u8], of: &TypeRef, limits: Limits<'_>) -> Result<(String, Value), WireError> {
    let mut key = String::new();
    let mut read = None;
    for member in Fields::new(entry) {
        match member? {
            (1, value) => value.text(1)?.clone_into(&mut key),
            (2, value) => match of.item().filter(|_| matches!(of.shape(), Shape::List { .. })) {
                Some(item) => {
                    let items = Fields::new(value.bytes(2)?).map(|part| {
                        let (number, value) = part?;
                        read_value(value, number, &item, limits.below())
                    });
                    read = Some(Value::Array(items.collect::<Result<_, _>>()?));
                }
                None => read = Some(read_value(value, 2, of, limits.below())?),
            },
            _ => {}
        }
    }
    let absent = || match of.shape() {
        Shape::Scalar(Scalar::Quantity) => "0".into(),
        Shape::Scalar(Scalar::String | Scalar::Bytes) => "".into(),
        Shape::Struct(_) | Shape::Map { .. } => Value::Object(Map::new()),
        _ => Value::Null,
    };
    Ok((key, read.unwrap_or_else(absent)))
}

fn read_value(value: Wire<'_>, number: u32, ty: &TypeRef, limits: Limits<'_>) -> Result<Value, WireError> {
    limits.charge(size_of::<Value>())?;
    Ok(match ty.shape() {
        Shape::Struct(_) => {
            limits.charge(OBJECT_WEIGHT)?;
            let mut members = Map::new();
            read_struct(value.bytes(number)?, ty, &[], &mut members, limits.below())?;
            Value::Object(members)
        }
        Shape::Scalar(scalar) => read_scalar(value, number, *scalar)?,
        Shape::Any => read_any(value.bytes(number)?, ty, limits.below())?,
        // No upstream type has a list in a list or a map in a list.
        Shape::List { .. } | Shape::Map { .. } => return Err(WireError::Kind(number)),
    })
}

#[expect(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "negative numbers travel as two's complement"
)]
fn read_scalar(value: Wire<'_>, number: u32, scalar: Scalar) -> Result<Value, WireError> {
    Ok(match scalar {
        Scalar::String => value.text(number)?.into(),
        Scalar::Bytes => STANDARD.encode(value.bytes(number)?).into(),
        Scalar::Int32 => (value.varint(number)? as i32).into(),
        Scalar::Int64 => (value.varint(number)? as i64).into(),
        Scalar::Boolean => (value.varint(number)? != 0).into(),
        Scalar::Number => match value {
            Wire::Fixed64(bits) => f64::from_bits(bits).into(),
            _ => return Err(WireError::Kind(number)),
        },
        Scalar::IntOrString => {
            let (mut is_text, mut whole, mut text) = (false, 0, "");
            for part in Fields::new(value.bytes(number)?) {
                match part? {
                    (1, value) => is_text = value.varint(1)? != 0,
                    (2, value) => whole = value.varint(2)? as i32,
                    (3, value) => text = value.text(3)?,
                    _ => {}
                }
            }
            if is_text { text.into() } else { whole.into() }
        }
        Scalar::Quantity => {
            let mut text = "0";
            for part in Fields::new(value.bytes(number)?) {
                if let (1, value) = part? {
                    text = value.text(1)?;
                }
            }
            text.into()
        }
        Scalar::Time | Scalar::MicroTime => read_time(value.bytes(number)?, scalar)?,
    })
}

/// Decodes a time. An empty message is no time, as in Go.
#[expect(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "negative numbers travel as two's complement"
)]
fn read_time(message: &[u8], scalar: Scalar) -> Result<Value, WireError> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    for part in Fields::new(message) {
        match part? {
            (1, value) => seconds = value.varint(1)? as i64,
            (2, value) => nanos = value.varint(2)? as i32,
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, nanos).map_err(|_| WireError::Time)?;
    let form = if scalar == Scalar::Time { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
    Ok(time.strftime(form).to_string().into())
}

/// Decodes raw JSON, or one of the union types of custom resource definitions.
fn read_any(message: &[u8], ty: &TypeRef, limits: Limits<'_>) -> Result<Value, WireError> {
    limits.check_depth()?;
    let schema = || ty.named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    let alternative = ty.name().and_then(|name| name.split_once(".JSONSchemaPropsOr")).map(|(_, rest)| rest);
    let mut read = Value::Null;
    for member in Fields::new(message) {
        let (number, value) = member?;
        match (alternative, number) {
            (None, 1) => {
                let raw = value.bytes(number)?;
                if !raw.is_empty() {
                    read = serde_json::from_slice(raw).map_err(|error| WireError::Raw(error.to_string()))?;
                }
            }
            (Some("Bool"), 1) => read = (value.varint(number)? != 0).into(),
            (Some("Bool"), 2) | (Some("Array" | "StringArray"), 1) => {
                read = read_value(value, number, &schema(), limits)?;
            }
            (Some(list @ ("Array" | "StringArray")), 2) => {
                let item = if list == "Array" {
                    read_value(value, number, &schema(), limits)?
                } else {
                    value.text(number)?.into()
                };
                match &mut read {
                    Value::Array(items) => items.push(item),
                    _ => read = Value::Array(vec![item]),
                }
            }
            _ => {}
        }
    }
    Ok(read)
}
