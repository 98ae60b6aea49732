//! The permitted values of an enum.

use std::{collections::HashSet, fmt::Write as _};

use serde_json::{Number, Value};

use crate::field::{MAX_TEXT_BYTES, cut};

/// The permitted values of an enum, for lookups.
#[derive(Debug)]
pub(crate) struct AllowedValues {
    values: HashSet<Value>,
    /// The explanation of an error, formatted once for all errors.
    text: String,
}

impl AllowedValues {
    /// Creates the set of values of an enum.
    pub(crate) fn new(values: &[Value]) -> Self {
        let mut text = "supported values: ".to_owned();
        for (index, value) in values.iter().enumerate() {
            if text.len() > MAX_TEXT_BYTES {
                break;
            }
            if index > 0 {
                text.push_str(", ");
            }
            let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            _ = write!(text, "{name:?}");
        }
        Self { values: values.iter().map(canonical).collect(), text: cut(text, MAX_TEXT_BYTES) }
    }

    /// Returns whether `value` is permitted. Numbers are equal whatever their notation.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        if value.is_number() { self.values.contains(&canonical(value)) } else { self.values.contains(value) }
    }

    /// Returns the explanation of an error about a value that is not permitted.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Returns an integer without its fraction; other values unchanged.
fn canonical(value: &Value) -> Value {
    let whole = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9.0e15);
    match (value, whole) {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small enough")]
        (Value::Number(number), Some(whole)) if number.is_f64() => Value::Number(Number::from(whole as i64)),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn enum_numbers_match_in_any_notation() {
        let allowed =
            AllowedValues::new(&[json!(1), json!(2.0), json!(0.5), json!("a"), json!(null), json!([1])]);
        for (value, is_allowed) in [
            (json!(1.0), true),
            (json!(2), true),
            (json!(0.5), true),
            (json!("1"), false),
            (json!(null), true),
            (json!([1]), true),
            (json!(3), false),
        ] {
            assert_eq!(allowed.contains(&value), is_allowed, "{value}");
        }
        assert!(
            allowed.text().starts_with("supported values: \"1\", \"2.0\", \"0.5\", \"a\""),
            "{}",
            allowed.text()
        );
    }

    #[test]
    fn the_error_message_of_a_large_enum_is_truncated() {
        let values: Vec<Value> = (0..20_000).map(|number| json!(format!("value-{number}"))).collect();
        assert!(AllowedValues::new(&values).text().len() < MAX_TEXT_BYTES + 16);
    }
}
