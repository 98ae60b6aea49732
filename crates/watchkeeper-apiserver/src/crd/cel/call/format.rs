//! The string function `format`, which replaces verbs such as `%d` by values.

use std::fmt::Write as _;

use kube_cel::cel::Value as Library;

use super::{
    super::{
        eval::EvalResult,
        meter::{EvalError, Meter},
        value::{List, Value},
    },
    convert::{display, instant, seconds, shortest},
};

/// The maximum number of digits after the point that a verb may request.
const PRECISION: usize = 100;

pub(super) fn format<'a>(text: &str, values: &List<'a>, meter: &mut Meter) -> EvalResult<'a> {
    meter.allocate(text.len())?;
    let mut result = String::with_capacity(text.len());
    let mut used = 0;
    let mut rest = text;
    while let Some((plain, verb)) = rest.split_once('%') {
        result.push_str(plain);
        if let Some(after) = verb.strip_prefix('%') {
            result.push('%');
            rest = after;
            continue;
        }
        let (precision, verb) = precision(verb)?;
        let mut chars = verb.chars();
        let Some(kind) = chars.next() else { return EvalError::error("unexpected end of string") };
        rest = chars.as_str();
        let Some(value) = values.get(used) else {
            return EvalError::error(format!("index {used} out of range"));
        };
        used += 1;
        let formed = formed(kind, &value?, precision, meter)?;
        meter.allocate(formed.len())?;
        result.push_str(&formed);
    }
    result.push_str(rest);
    Ok(Value::text(result))
}

fn precision(verb: &str) -> Result<(Option<usize>, &str), EvalError> {
    let Some(after) = verb.strip_prefix('.') else { return Ok((None, verb)) };
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (digits, rest) = after.split_at(end);
    match digits.parse() {
        Ok(precision) if precision <= PRECISION => Ok((Some(precision), rest)),
        _ => EvalError::error(format!("error while parsing precision: {digits}")),
    }
}

fn formed(
    kind: char,
    value: &Value<'_>,
    precision: Option<usize>,
    meter: &mut Meter,
) -> Result<String, EvalError> {
    let wrong =
        || EvalError::error(format!("error during formatting: %{kind} cannot format {}", value.type_name()));
    match kind {
        's' => {
            let mut text = String::new();
            spell(value, &mut text, meter)?;
            Ok(text)
        }
        'd' => match value {
            Value::Int(value) => Ok(value.to_string()),
            Value::Uint(value) => Ok(value.to_string()),
            _ => wrong(),
        },
        'f' | 'e' => {
            let Some(number) = number(value) else { return wrong() };
            let precision = precision.unwrap_or(6);
            if kind == 'f' || !number.is_finite() {
                return Ok(format!("{number:.precision$}"));
            }
            let text = format!("{number:.precision$e}");
            let Some((digits, exponent)) = text.split_once('e') else { return Ok(text) };
            let power: i32 = exponent.parse().unwrap_or(0);
            let sign = if power < 0 { '-' } else { '+' };
            Ok(format!("{digits}e{sign}{:02}", power.unsigned_abs()))
        }
        'b' => match value {
            Value::Bool(value) => Ok(u8::from(*value).to_string()),
            Value::Int(value) => Ok(signed(*value, |value| format!("{value:b}"))),
            Value::Uint(value) => Ok(format!("{value:b}")),
            _ => wrong(),
        },
        'o' => match value {
            Value::Int(value) => Ok(signed(*value, |value| format!("{value:o}"))),
            Value::Uint(value) => Ok(format!("{value:o}")),
            _ => wrong(),
        },
        'x' | 'X' => {
            let lower = match value {
                Value::Int(value) => signed(*value, |value| format!("{value:x}")),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => hex(text.as_bytes(), meter)?,
                Value::Bytes(bytes) => hex(bytes, meter)?,
                _ => return wrong(),
            };
            Ok(if kind == 'X' { lower.to_uppercase() } else { lower })
        }
        _ => EvalError::error(format!("unrecognized formatting clause \"{kind}\"")),
    }
}

fn signed(value: i64, digits: fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", digits(value.unsigned_abs()))
}

#[expect(clippy::cast_precision_loss, reason = "shown as a double")]
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        _ => None,
    }
}

fn hex(bytes: &[u8], meter: &mut Meter) -> Result<String, EvalError> {
    meter.allocate(bytes.len().saturating_mul(2))?;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Writes a value in the format of `%s`.
fn spell(value: &Value<'_>, text: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    meter.work(4)?;
    match value {
        Value::String(part) => {
            meter.allocate(part.len())?;
            text.push_str(part);
        }
        Value::Bytes(bytes) => {
            meter.allocate(bytes.len())?;
            text.push_str(&String::from_utf8_lossy(bytes));
        }
        Value::Double(value) => text.push_str(&shortest(*value)),
        Value::List(list) => {
            text.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                spell(&item?, text, meter)?;
            }
            text.push(']');
        }
        Value::Map(map) => {
            text.push('{');
            for (index, key) in map.keys().iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                spell(key, text, meter)?;
                text.push_str(": ");
                if let Some(value) = map.get(key) {
                    spell(&value?, text, meter)?;
                }
            }
            text.push('}');
        }
        Value::Library(Library::Duration(length)) => {
            text.push_str(&seconds(length.num_nanoseconds().unwrap_or(i64::MAX)));
        }
        Value::Library(Library::Timestamp(_)) => text.push_str(&instant(value)),
        other => text.push_str(&display(other)),
    }
    Ok(())
}
