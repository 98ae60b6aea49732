//! Conversions between types, and the text forms of values.

use std::fmt::Write as _;

use kube_cel::cel::Value as Library;

use super::{
    super::{
        eval::EvalResult,
        meter::{EvalError, Meter, no_overload},
        value::Value,
    },
    library,
};

pub(super) fn convert<'a>(function: &str, value: &Value<'a>, meter: &mut Meter) -> EvalResult<'a> {
    match function {
        "bool" => boolean(value),
        "bytes" => match value {
            Value::Bytes(_) => Ok(value.clone()),
            Value::String(text) => {
                meter.allocate(text.len())?;
                Ok(Value::Bytes(text.as_bytes().into()))
            }
            _ => no_overload(),
        },
        "double" => double(value),
        "int" => int(value),
        "uint" => uint(value),
        "string" => string(value, meter),
        _ => match (function, value) {
            ("timestamp", Value::Library(Library::Timestamp(_)))
            | ("duration", Value::Library(Library::Duration(_))) => Ok(value.clone()),
            ("timestamp", Value::Int(seconds)) => {
                let Ok(time) = jiff::Timestamp::from_second(*seconds) else {
                    return EvalError::error("timestamp overflow");
                };
                library::invoke(function, false, &[Value::text(time.to_string())], meter)
            }
            (_, Value::String(_)) => library::invoke(function, false, std::slice::from_ref(value), meter),
            _ => no_overload(),
        },
    }
}

fn boolean<'a>(value: &Value<'a>) -> EvalResult<'a> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => EvalError::error("type conversion error from 'string' to 'bool'"),
        },
        _ => no_overload(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a conversion to double rounds")]
fn double<'a>(value: &Value<'a>) -> EvalResult<'a> {
    match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => match text.parse::<f64>() {
            Ok(value) => Ok(Value::Double(value)),
            Err(_) => EvalError::error("type conversion error from 'string' to 'double'"),
        },
        _ => no_overload(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn int<'a>(value: &Value<'a>) -> EvalResult<'a> {
    match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(value) => {
            i64::try_from(*value).map(Value::Int).or_else(|_| EvalError::error("integer overflow"))
        }
        Value::Double(value) if value.abs() < 9_223_372_036_854_775_807.0 => Ok(Value::Int(*value as i64)),
        Value::Double(_) => EvalError::error("integer overflow"),
        Value::String(text) => match text.parse() {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => EvalError::error("type conversion error from 'string' to 'int'"),
        },
        Value::Library(Library::Timestamp(time)) => Ok(Value::Int(time.timestamp())),
        Value::Library(Library::Duration(length)) => {
            Ok(Value::Int(length.num_nanoseconds().unwrap_or(i64::MAX)))
        }
        _ => no_overload(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn uint<'a>(value: &Value<'a>) -> EvalResult<'a> {
    match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(value) => {
            u64::try_from(*value).map(Value::Uint).or_else(|_| EvalError::error("unsigned integer overflow"))
        }
        Value::Double(value) if (0.0..18_446_744_073_709_551_615.0).contains(value) => {
            Ok(Value::Uint(*value as u64))
        }
        Value::Double(_) => EvalError::error("unsigned integer overflow"),
        Value::String(text) => match text.parse() {
            Ok(value) => Ok(Value::Uint(value)),
            Err(_) => EvalError::error("type conversion error from 'string' to 'uint'"),
        },
        _ => no_overload(),
    }
}

fn string<'a>(value: &Value<'a>, meter: &mut Meter) -> EvalResult<'a> {
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Bytes(bytes) => {
            meter.allocate(bytes.len())?;
            match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::text(text.to_owned())),
                Err(_) => EvalError::error("invalid UTF-8 in bytes, cannot convert to string"),
            }
        }
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) => Ok(Value::text(display(value))),
        Value::Library(Library::Duration(length)) => {
            Ok(Value::text(seconds(length.num_nanoseconds().unwrap_or(i64::MAX))))
        }
        Value::Library(Library::Timestamp(_)) => Ok(Value::text(instant(value))),
        Value::Library(_) => library::invoke("string", false, std::slice::from_ref(value), meter),
        _ => no_overload(),
    }
}

/// Formats a timestamp in UTC, such as `2020-02-03T04:05:06Z`.
pub(super) fn instant(value: &Value<'_>) -> String {
    let Value::Library(Library::Timestamp(time)) = value else { return String::new() };
    let nanoseconds = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(time.timestamp(), nanoseconds).map(|time| time.to_string()).unwrap_or_default()
}

/// Formats a duration as seconds, such as `1.5s`.
pub(super) fn seconds(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let nanoseconds = nanoseconds.unsigned_abs();
    let (whole, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}

/// Formats a scalar as text.
pub(in super::super) fn display(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => shortest(*value),
        Value::String(text) => text.to_string(),
        Value::Type(name) => (*name).to_owned(),
        other => other.type_name().to_owned(),
    }
}

/// Formats a double with the fewest digits, in Go's format.
pub(super) fn shortest(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&power) {
        return value.to_string();
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", power.unsigned_abs())
}

/// Returns a quoted text with escape sequences.
pub(super) fn quote<'a>(text: &str, meter: &mut Meter) -> EvalResult<'a> {
    meter.allocate(text.len().saturating_mul(2) + 2)?;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' | '"' => {
                let _ = write!(quoted, "\\{c}");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(Value::text(quoted))
}
