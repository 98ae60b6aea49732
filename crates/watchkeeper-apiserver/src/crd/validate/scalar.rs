//! Types, texts and numbers.

use serde_json::{Number, Value};

use super::checker::Checker;
use crate::{
    crd::{
        format::Format,
        structural::{JsonType, Structural},
    },
    field::{FieldError, FieldErrorKind},
};

/// The bytes of a text that count as one step.
const BYTES_PER_STEP: u64 = 64;

impl Checker<'_> {
    pub(super) fn check_type(&mut self, value: &Value, schema: &Structural) {
        let (fits, expected) = match (schema.ty, schema.is_int_or_string) {
            (_, true) => (is_integer(value) || value.is_string(), "integer,string"),
            (None, false) => return,
            (Some(ty), false) => (has_type(value, ty), ty.name()),
        };
        // Upstream leaves lists to the format where one is set, and formats check texts only.
        let is_left_to_format = value.is_array()
            && !schema.format_name.is_empty()
            && !matches!(schema.ty, Some(JsonType::Integer | JsonType::Number));
        if fits || is_left_to_format || (value.is_null() && schema.is_nullable) {
            return;
        }
        let given = type_name(value);
        let detail = format!("{} in body must be of type {expected}: {given:?}", self.short_path());
        self.error(FieldErrorKind::TypeInvalid, given.into(), detail);
    }

    pub(super) fn text(&mut self, text: &str, schema: &Structural) {
        if !self.can_continue(text.len() as u64 / BYTES_PER_STEP)
            || !schema.pattern.as_ref().is_none_or(|pattern| self.can_continue(pattern.steps(text)))
        {
            return;
        }
        let length = text.chars().count() as u64;
        // Only the first of these errors is reported.
        if let Some(most) = schema.bounds.max_length.filter(|most| length > *most) {
            let path = self.current_path();
            let detail = format!("may not be more than {most} bytes");
            self.errors.push(FieldError::new(FieldErrorKind::TooLong, path, None, detail));
        } else if let Some(least) = schema.bounds.min_length.filter(|least| length < *least) {
            self.invalid(text, &format!("should be at least {least} chars long"));
        } else if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            self.invalid(text, &format!("should match '{pattern}'"));
        }
        if let Some(Format::Text(check)) = schema.format
            && !check(text)
        {
            let name = &schema.format_name;
            let detail = format!("{} in body must be of type {name}: {text:?}", self.short_path());
            self.error(FieldErrorKind::TypeInvalid, text.into(), detail);
        }
    }

    pub(super) fn number(&mut self, number: &Number, schema: &Structural) {
        let value = number.as_f64().unwrap_or(f64::NAN);
        if schema.ty == Some(JsonType::Integer) {
            let whole =
                number.as_i64().or_else(|| (value.fract() == 0.0 && value.abs() < 9.2e18).then_some(0));
            let wrong = match (whole, schema.format) {
                (None, _) => Some("(default format)".to_owned()),
                (Some(_), Some(Format::Int32))
                    if value.abs() > 2_147_483_648.0 || value.to_bits() == 2_147_483_648_f64.to_bits() =>
                {
                    Some("with format int32".to_owned())
                }
                _ => None,
            };
            if let Some(format) = wrong {
                let detail =
                    format!("Checked value must be of type integer {format} in {}", self.short_path());
                self.error_at_base(detail);
            }
        }
        let bounds = &schema.bounds;
        // The factor of a whole number is a whole number too, as in Go.
        if let (Some(of), Some(whole)) = (bounds.multiple_of, number.as_i64()) {
            #[expect(clippy::cast_possible_truncation, reason = "upstream truncates the factor")]
            let factor = of as i64;
            if factor <= 0 {
                let detail = format!(
                    "factor MultipleOf declared for {} must be positive: {factor}",
                    self.short_path()
                );
                self.error(FieldErrorKind::Invalid, number.clone().into(), detail);
            } else if whole % factor != 0 {
                self.invalid(number.clone(), &format!("should be a multiple of {}", plain(of)));
            }
        } else if let Some(of) = bounds.multiple_of.filter(|of| *of > 0.0) {
            let share = value / of;
            if (share - share.round()).abs() > f64::EPSILON * share.abs().max(1.0) {
                self.invalid(number.clone(), &format!("should be a multiple of {}", plain(of)));
            }
        }
        if let Some(most) = bounds.maximum {
            if bounds.excludes_maximum && value >= most {
                self.invalid(number.clone(), &format!("should be less than {}", plain(most)));
            } else if value > most {
                self.invalid(number.clone(), &format!("should be less than or equal to {}", plain(most)));
            }
        }
        if let Some(least) = bounds.minimum {
            if bounds.excludes_minimum && value <= least {
                self.invalid(number.clone(), &format!("should be greater than {}", plain(least)));
            } else if value < least {
                self.invalid(number.clone(), &format!("should be greater than or equal to {}", plain(least)));
            }
        }
    }
}

fn is_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
        }
        _ => false,
    }
}

fn has_type(value: &Value, ty: JsonType) -> bool {
    match ty {
        JsonType::Object => value.is_object(),
        JsonType::Array => value.is_array(),
        JsonType::String => value.is_string(),
        JsonType::Integer => is_integer(value),
        JsonType::Number => value.is_number(),
        JsonType::Boolean => value.is_boolean(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Formats a number without a fraction of zero: `10` instead of `10.0`.
fn plain(number: f64) -> String {
    number.to_string()
}
