//! The steps of a path from an object to one of its values, as in `managedFields`.

use std::{
    cmp::Ordering,
    fmt::{self, Write},
};

use serde_json::{Number, Value};

/// A step of a path into an object.
///
/// Steps are ordered: members by name, then items by keys, items by value, items by index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathElement {
    /// A member with this name.
    Field(Box<str>),
    /// A list item with these values of its key members, sorted by name.
    Key(Vec<(Box<str>, OrderedValue)>),
    /// An item of a set with this value.
    Value(OrderedValue),
    /// A list item at this index.
    Index(i64),
}

/// A JSON value with a total order: numbers, strings, booleans, lists, objects, null.
///
/// An integer equals the same number written with a fraction of zero.
#[derive(Debug, Clone)]
pub(crate) struct OrderedValue(pub Value);

/// The error for a text that is not a step of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a step of a field path: {reason}")]
pub(crate) struct InvalidElement {
    text: String,
    reason: &'static str,
}

impl PathElement {
    /// Returns the step to the member `name`.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Parses `f:name`, `k:{"name":"x"}`, `v:"x"` or `i:0`. Returns none for unknown prefixes, which are to be ignored.
    ///
    /// # Errors
    /// Returns an error if the text has no prefix, or if the part after the prefix is malformed.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, InvalidElement> {
        let invalid = |reason| InvalidElement { text: text.to_owned(), reason };
        let Some((prefix, rest)) = text.split_once(':').filter(|(prefix, _)| prefix.len() == 1) else {
            return Err(invalid("it must start with a letter and a colon"));
        };
        match prefix {
            "f" => Ok(Some(Self::field(rest))),
            "v" => {
                let value = serde_json::from_str(rest).map_err(|_| invalid("a JSON value must follow"))?;
                Ok(Some(Self::Value(OrderedValue(value))))
            }
            "k" => {
                let members: serde_json::Map<String, Value> =
                    serde_json::from_str(rest).map_err(|_| invalid("a JSON object must follow"))?;
                Ok(Some(Self::key(
                    members.into_iter().map(|(name, value)| (name.into(), OrderedValue(value))).collect(),
                )))
            }
            "i" => rest
                .parse()
                .map(|index| Some(Self::Index(index)))
                .map_err(|_| invalid("an index must follow")),
            _ => Ok(None),
        }
    }

    /// Returns the step to the item with these keys, in any order.
    pub(crate) fn key(mut keys: Vec<(Box<str>, OrderedValue)>) -> Self {
        keys.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self::Key(keys)
    }

    /// Returns the step as in `managedFields`. [`PathElement::parse`] is the inverse.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        match self {
            Self::Field(name) => {
                text.push_str("f:");
                text.push_str(name);
            }
            Self::Key(keys) => {
                text.push_str("k:{");
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    push_string(&mut text, name);
                    text.push(':');
                    push_json(&mut text, &value.0);
                }
                text.push('}');
            }
            Self::Value(value) => {
                text.push_str("v:");
                push_json(&mut text, &value.0);
            }
            Self::Index(index) => {
                text.push_str("i:");
                text.push_str(&index.to_string());
            }
        }
        text
    }
}

/// Displays as `.name`, `[name="x",port=80]`, `[="x"]` or `[0]`, as in conflicts.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for OrderedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        push_json(&mut text, &self.0);
        f.write_str(&text)
    }
}

impl PartialEq for OrderedValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedValue {}

impl PartialOrd for OrderedValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedValue {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Returns whether two values are equal for a client: numbers by value, objects regardless of the order of their members.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => compare(left, right).is_eq(),
    }
}

fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differing =
                left.iter().zip(right).map(|(left, right)| compare(left, right)).find(|order| order.is_ne());
            differing.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let (left, right) = (sorted(left), sorted(right));
            let members = left.iter().zip(&right);
            let differing = members
                .map(|(left, right)| left.0.cmp(right.0).then_with(|| compare(left.1, right.1)))
                .find(|order| order.is_ne());
            differing.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn sorted(members: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(whole), None) => compare_mixed(whole, float(right)),
        (None, Some(whole)) => compare_mixed(whole, float(left)).reverse(),
        (None, None) => float(left).total_cmp(&float(right)),
    }
}

fn float(number: &Number) -> f64 {
    // Without arbitrary precision, every number converts.
    number.as_f64().unwrap_or_default()
}

/// Compares exactly, so that the order is total beyond the integers that a float can represent.
fn compare_mixed(whole: i128, float: f64) -> Ordering {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast to i128 stops at its ends, and whole numbers are of 64 bits"
    )]
    let floor = float.floor() as i128;
    whole.cmp(&floor).then(if float > float.floor() { Ordering::Less } else { Ordering::Equal })
}

/// Writes JSON like the encoder behind `managedFields`, which escapes HTML characters.
fn push_json(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => push_string(text, string),
        Value::Number(number) => match number.as_f64() {
            // That encoder drops the fraction of a whole float.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e21 => {
                // Writing to a string cannot fail.
                let _ = write!(text, "{float:.0}");
            }
            _ => text.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_json(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (name, member)) in sorted(members).into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_string(text, name);
                text.push(':');
                push_json(text, member);
            }
            text.push('}');
        }
        Value::Bool(_) | Value::Null => text.push_str(&value.to_string()),
    }
}

fn push_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => {
                text.push('\\');
                text.push(character);
            }
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}
