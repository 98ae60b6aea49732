//! The formats of strings and numbers in schemas. Unknown formats are not checked.

use std::net::Ipv6Addr;

use base64::{Engine, engine::general_purpose::STANDARD};
use regex::Regex;

use super::structural::JsonType;
use crate::strategy::names;

/// A format that is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Format {
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A string of this format.
    Text(Check),
}

impl Format {
    /// Returns the format with this name for values of this type.
    pub(crate) fn for_type(ty: Option<JsonType>, name: &str) -> Option<Self> {
        match ty {
            Some(JsonType::Integer) => match name {
                "int32" => Some(Self::Int32),
                "int64" => Some(Self::Int64),
                _ => None,
            },
            None | Some(JsonType::String) => {
                let name = name.replace('-', "");
                TEXTS.iter().find(|(known, _)| *known == name).map(|(_, check)| Self::Text(*check))
            }
            Some(_) => None,
        }
    }
}

type Check = fn(&str) -> bool;

const TEXTS: &[(&str, Check)] = &[
    ("datetime", is_date_time),
    ("date", is_date),
    ("duration", |text| parse_duration_nanos(text).is_some()),
    ("ipv4", is_ipv4),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("cidr", |text| names::cidr(text).is_empty()),
    ("byte", |text| STANDARD.decode(text).is_ok()),
    ("password", |_| true),
    ("uuid", |text| is_uuid(text, None, "0123456789abcdef")),
    ("uuid3", |text| is_uuid(text, Some('3'), "0123456789abcdef")),
    ("uuid4", |text| is_uuid(text, Some('4'), "89ab")),
    ("uuid5", |text| is_uuid(text, Some('5'), "89ab")),
    ("uri", is_uri),
    ("email", is_email),
    ("hostname", is_hostname),
    ("mac", is_mac),
    ("hexcolor", |text| {
        let digits = text.strip_prefix('#').unwrap_or(text);
        matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    }),
    ("rgbcolor", |text| {
        matches(
            r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
            text,
        )
    }),
    ("ssn", |text| matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$", text)),
    ("isbn", |text| is_isbn(text, 10) || is_isbn(text, 13)),
    ("isbn10", |text| is_isbn(text, 10)),
    ("isbn13", |text| is_isbn(text, 13)),
    ("creditcard", is_credit_card),
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())),
];

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

fn is_date_time(text: &str) -> bool {
    // RFC 3339 requires a date, a T and a zone; the parser accepts more.
    let has_form = text.len() >= 20 && text.as_bytes().get(10).is_some_and(|byte| b"Tt ".contains(byte));
    has_form && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Parses a duration such as `1h30m` or `2 days`, in nanoseconds.
pub(crate) fn parse_duration_nanos(text: &str) -> Option<i64> {
    const UNITS: [(&[&str], f64); 8] = [
        (&["ns", "nano", "nanosecond", "nanoseconds"], 1.0),
        (&["us", "µs", "μs", "micro", "microsecond", "microseconds"], 1e3),
        (&["ms", "milli", "millisecond", "milliseconds"], 1e6),
        (&["s", "sec", "second", "seconds"], 1e9),
        (&["m", "min", "minute", "minutes"], 60e9),
        (&["h", "hr", "hour", "hours"], 3600e9),
        (&["d", "day", "days"], 86400e9),
        (&["w", "wk", "week", "weeks"], 604_800e9),
    ];
    if matches!(text, "0" | "+0" | "-0") {
        return Some(0);
    }
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        rest = rest.trim_start();
        let digits = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?.trim_start();
        let letters = rest.find(|character: char| !character.is_alphabetic()).unwrap_or(rest.len());
        let unit = rest.get(..letters)?;
        let (_, nanos) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        total += number * nanos;
        rest = rest.get(letters..)?;
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the preceding check")]
    (total.abs() < 9.2e18).then_some((sign * total) as i64)
}

fn is_uuid(text: &str, version: Option<char>, variants: &str) -> bool {
    let digits: String = text
        .chars()
        .filter(|character| *character != '-')
        .map(|character| character.to_ascii_lowercase())
        .collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_valid_dashes = text.char_indices().filter(|(_, character)| *character == '-').count() <= 4;
    is_hex
        && has_valid_dashes
        && version.is_none_or(|version| digits.chars().nth(12) == Some(version))
        && digits.chars().nth(16).is_some_and(|variant| variants.contains(variant))
}

/// Returns whether the text is a URI with a scheme, or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.contains(|character: char| character.is_control() || character == ' ') {
        return false;
    }
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    let has_scheme = scheme.is_some_and(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    has_scheme || text.starts_with('/')
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        let has_valid_local_part = !local.is_empty()
            && !local.contains(|character: char| {
                character.is_whitespace() || "()<>[],;:\\\"@".contains(character)
            });
        has_valid_local_part
            && !domain.is_empty()
            && !domain.contains(char::is_whitespace)
            && !domain.starts_with('.')
            && !domain.ends_with('.')
    })
}

/// An IPv4 address; leading zeros are tolerated.
fn is_ipv4(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.trim_start_matches('0').len() <= 3
            && part.parse::<u64>().is_ok_and(|number| number <= 255)
    };
    text.split('.').count() == 4 && text.split('.').all(is_part)
}

/// A label without dots and with at most one dash, its second character, or labels that end with a top-level domain of at
/// least two letters.
fn is_hostname(text: &str) -> bool {
    let is_inner = |character: char| character.is_alphanumeric();
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        None => {
            let rest = text.strip_prefix(is_inner).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
            rest.is_some_and(|rest| rest.chars().all(is_inner))
        }
        Some((labels, top)) => {
            let is_label = |label: &str| {
                label.starts_with(is_inner)
                    && label.ends_with(is_inner)
                    && label.chars().all(|character| is_inner(character) || character == '-')
            };
            top.chars().count() >= 2
                && top.chars().all(char::is_alphabetic)
                && labels.split('.').all(is_label)
        }
    }
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> =
        if text.contains('.') { text.split('.').collect() } else { text.split([':', '-']).collect() };
    let width = if text.contains('.') { 4 } else { 2 };
    let has_valid_count =
        if width == 4 { matches!(parts.len(), 3 | 4 | 10) } else { matches!(parts.len(), 6 | 8 | 20) };
    has_valid_count
        && parts.iter().all(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_isbn(text: &str, length: usize) -> bool {
    let characters: Vec<char> = text.chars().filter(|character| !matches!(character, '-' | ' ')).collect();
    if characters.len() != length {
        return false;
    }
    let mut sum = 0;
    for (index, character) in characters.iter().enumerate() {
        let index = u32::try_from(index).unwrap_or(0);
        let digit = match (character, length) {
            ('X' | 'x', 10) if index == 9 => 10,
            _ => match character.to_digit(10) {
                Some(digit) => digit,
                None => return false,
            },
        };
        sum += digit * if length == 10 { 10 - index } else { 1 + 2 * (index % 2) };
    }
    sum % if length == 10 { 11 } else { 10 } == 0
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|character| character.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (1, double) if double > 9 => double - 9,
            (1, double) => double,
            _ => *digit,
        })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::{Format, JsonType, parse_duration_nanos};

    #[test]
    fn known_formats_are_checked_and_others_are_not() {
        let table: &[(&str, &[&str], &[&str])] = &[
            (
                "date-time",
                &["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5+02:00"],
                &["nope", "2020-01-01", "2020-13-01T00:00:00Z"],
            ),
            ("date", &["2020-02-29"], &["2021-02-29", "x"]),
            ("duration", &["1h30m", "2 days", "1.5s", "-3m", "0"], &["", "h", "1", "1 fortnight"]),
            ("ipv4", &["10.0.0.1", "01.2.3.4"], &["::1", "x", "1.2.3", "1.2.3.256"]),
            ("ipv6", &["::1"], &["10.0.0.1"]),
            ("cidr", &["10.0.0.0/8"], &["10.0.0.0"]),
            ("byte", &["AAEC"], &["%%"]),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("uri", &["https://example.com/x", "/path"], &["", "no scheme"]),
            ("email", &["a@example.com"], &["a", "@b"]),
            ("hostname", &["a.example.com", "a-b", "abc"], &["-a", "", "a.b", "a.example.com."]),
            ("mac", &["01:23:45:67:89:ab"], &["01:23"]),
            ("hexcolor", &["#fff", "A0B1C2"], &["#ff"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]),
        ];
        for (name, good, bad) in table {
            let Some(Format::Text(check)) = Format::for_type(Some(JsonType::String), name) else {
                panic!("{name}")
            };
            for text in *good {
                assert!(check(text), "{name} {text}");
            }
            for text in *bad {
                assert!(!check(text), "{name} {text}");
            }
        }
        assert!(Format::for_type(Some(JsonType::String), "no-such").is_none());
        assert!(Format::for_type(Some(JsonType::Object), "ipv4").is_none());
    }

    #[test]
    fn durations_are_nanoseconds() {
        assert_eq!(parse_duration_nanos("1m1ms"), Some(60_001_000_000));
    }
}
