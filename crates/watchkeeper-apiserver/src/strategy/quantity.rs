//! Quantities of resources: `100m`, `1.5`, `2Gi`.

use std::cmp::Ordering;

use serde_json::Value;

/// The number of units in one: quantities are counted in nanos, so that none needs a fraction.
const NANO: i128 = 1_000_000_000;

/// The notation of a quantity, which is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Decimal suffixes: `k`, `M`, `m`.
    Decimal,
    /// Binary suffixes: `Ki`, `Mi`.
    Binary,
    /// An exponent: `1e3`.
    Exponent,
}

/// A quantity. Quantities compare by value, not by notation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nano: i128,
    style: Style,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Parses a quantity. Returns none if the text is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits_end = text
            .char_indices()
            .find(|&(offset, character)| {
                let is_sign = offset == 0 && matches!(character, '+' | '-');
                !(is_sign || character.is_ascii_digit() || character == '.')
            })
            .map_or(text.len(), |(offset, _)| offset);
        let (number, suffix) = text.split_at(digits_end);
        let (is_negative, number) = match number.strip_prefix(['+', '-']) {
            Some(rest) => (number.starts_with('-'), rest),
            None => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        if !has_digits || fraction.contains('.') {
            return None;
        }
        let (style, binary_shift, exponent) = Self::suffix(suffix)?;
        // Digits beyond the precision of a real server are cut off; a quantity that is too large becomes the largest one.
        let fraction = fraction.get(..fraction.len().min(12)).unwrap_or_default();
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let scale = 9 + exponent - i32::try_from(fraction.len()).ok()?;
        let shifted = digits.checked_mul(1_i128.checked_shl(binary_shift)?)?;
        let nano = if scale >= 0 {
            shifted.checked_mul(10_i128.checked_pow(u32::try_from(scale).ok()?)?)?
        } else {
            // Rounded up, like all quantities below the precision.
            let divisor = 10_i128.checked_pow(u32::try_from(-scale).ok()?)?;
            shifted / divisor + i128::from(shifted % divisor != 0)
        };
        Some(Self { nano: if is_negative { -nano } else { nano }, style })
    }

    fn suffix(suffix: &str) -> Option<(Style, u32, i32)> {
        if let Some(&(_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            return Some((Style::Binary, shift, 0));
        }
        if let Some(&(_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some((Style::Decimal, 0, exponent));
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
        (-24..=18).contains(&exponent).then_some((Style::Exponent, 0, exponent))
    }

    /// Parses a quantity in a JSON value: a string or a number.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Returns whether the quantity is negative.
    pub(crate) fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Returns whether the quantity is zero.
    pub(crate) fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Returns whether the quantity is an integer.
    pub(crate) fn is_whole(self) -> bool {
        self.nano % NANO == 0
    }

    /// Returns the quantity as a floating-point number, for ratios.
    #[expect(clippy::cast_precision_loss, reason = "ratios are compared, not stored")]
    pub(crate) fn to_f64(self) -> f64 {
        self.nano as f64 / NANO as f64
    }

    /// Returns the sum of two quantities, saturating.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano), ..self }
    }

    /// Returns whether the quantity is a multiple of `part`, which must not be zero.
    pub(crate) fn is_multiple_of(self, part: Self) -> bool {
        self.nano.checked_rem(part.nano) == Some(0)
    }

    /// Returns the quantity rounded up to a thousandth.
    pub(crate) fn rounded_up_to_milli(self) -> Self {
        const MICRO: i128 = 1_000_000;
        let rest = self.nano.rem_euclid(MICRO);
        let nano = if rest == 0 { self.nano } else { self.nano - rest + MICRO };
        Self { nano, ..self }
    }

    /// Formats the quantity in its canonical form.
    pub(crate) fn canonical(self) -> String {
        if self.nano == 0 {
            return "0".to_owned();
        }
        let is_binary = self.style == Style::Binary && self.is_whole() && self.nano.abs() >= 1024 * NANO;
        if is_binary {
            let mut ones = self.nano / NANO;
            let mut unit = "";
            for (name, _) in BINARY {
                if ones % 1024 != 0 {
                    break;
                }
                ones /= 1024;
                unit = name;
            }
            return format!("{ones}{unit}");
        }
        let mut number = self.nano;
        let mut exponent = -9;
        while number % 1000 == 0 && exponent < 18 {
            number /= 1000;
            exponent += 3;
        }
        match self.style {
            Style::Exponent if exponent != 0 => format!("{number}e{exponent}"),
            _ => {
                let unit = DECIMAL.iter().find(|(_, of)| *of == exponent).map_or("", |(name, _)| name);
                format!("{number}{unit}")
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.nano.cmp(&other.nano))
    }
}

/// Formats each quantity of a resource list in its canonical form, rounded to a thousandth.
pub(crate) fn canonicalize(resources: &mut super::edit::Members) {
    for amount in resources.values_mut() {
        if let Some(quantity) = Quantity::from_value(amount) {
            *amount = Value::String(quantity.rounded_up_to_milli().canonical());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn quantities_have_one_canonical_form() {
        let table = [
            ("1000m", "1"),
            ("1", "1"),
            ("1.5", "1500m"),
            ("0.1", "100m"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("1000Mi", "1000Mi"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("100", "100"),
            ("12000", "12k"),
            ("0", "0"),
            ("-500m", "-500m"),
            ("0.5Gi", "512Mi"),
            ("1n", "1n"),
            (".5", "500m"),
            ("5.", "5"),
            ("100Ki", "100Ki"),
            ("512Ki", "512Ki"),
        ];
        for (text, expected) in table {
            assert_eq!(Quantity::parse(text).map(Quantity::canonical).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_quantities_are_rejected() {
        for text in ["", "x", "1x", "1 Gi", "--1", "1.2.3", "Gi", "1ki", ".", "1e", "é"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_value() {
        let amount = |text| Quantity::parse(text).unwrap();
        assert!(amount("1Gi") > amount("1G"));
        assert!(amount("1000m") == amount("1"));
        assert!(amount("2") > amount("1"));
    }
}
