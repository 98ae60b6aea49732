//! The check and the normalization of scalar values.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::Value;

use crate::{schema::Scalar, strategy::quantity::Quantity};

/// Checks `value` and normalizes it to the form that the server writes.
///
/// # Errors
/// The message about a value of the wrong type.
pub(super) fn conform(value: &mut Value, scalar: Scalar) -> Result<(), String> {
    let wrong = |value: &Value| {
        Err(format!("cannot unmarshal {} into Go value of type {}", json_type(value), go_type(scalar)))
    };
    match (scalar, &*value) {
        (Scalar::String | Scalar::IntOrString, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Number, Value::Number(_)) => {}
        (Scalar::Bytes, Value::String(text)) => {
            let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
            let bytes = STANDARD.decode(&text).map_err(|_| "illegal base64 data".to_owned())?;
            *value = STANDARD.encode(bytes).into();
        }
        (Scalar::Int32 | Scalar::IntOrString, Value::Number(number)) => {
            if number.as_i64().is_none_or(|number| i32::try_from(number).is_err()) {
                return Err(format!("cannot unmarshal number {number} into Go value of type int32"));
            }
        }
        (Scalar::Int64, Value::Number(number)) => {
            if !number.is_i64() {
                return Err(format!("cannot unmarshal number {number} into Go value of type int64"));
            }
        }
        (Scalar::Quantity, Value::String(_) | Value::Number(_)) => *value = quantity(value)?,
        (Scalar::Time, Value::String(text)) => {
            *value = time(text)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        }
        (Scalar::MicroTime, Value::String(text)) => {
            let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
            if fraction.bytes().take_while(u8::is_ascii_digit).count() != 6 {
                return Err(format!("parsing time {text:?}: six digits of a second are needed"));
            }
            *value = time(text)?.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into();
        }
        _ => return wrong(value),
    }
    Ok(())
}

fn time(text: &str) -> Result<Timestamp, String> {
    let cannot = || format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse");
    if text.as_bytes().get(10) != Some(&b'T') {
        return Err(cannot());
    }
    text.parse().map_err(|_| cannot())
}

fn quantity(value: &Value) -> Result<Value, String> {
    Quantity::from_value(value).map(|quantity| quantity.canonical().into()).ok_or_else(|| {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()
    })
}

/// Returns the name of a JSON type in messages.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "string",
        Scalar::Bytes => "[]uint8",
        Scalar::Int32 => "int32",
        Scalar::Int64 => "int64",
        Scalar::Number => "float64",
        Scalar::Boolean => "bool",
        Scalar::IntOrString => "intstr.IntOrString",
        Scalar::Quantity => "resource.Quantity",
        Scalar::Time => "v1.Time",
        Scalar::MicroTime => "v1.MicroTime",
    }
}
