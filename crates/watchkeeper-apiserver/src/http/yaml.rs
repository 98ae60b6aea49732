//! A YAML writer in the style of the API: sorted keys, unindented lists, plain strings where they parse as the same text.

use serde_json::Value;

/// Writes a value.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => write_block(value, 0, &mut out),
        Value::Array(items) if !items.is_empty() => write_block(value, 0, &mut out),
        _ => {
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
    out
}

fn write_block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    indent(depth, out);
                }
                write_member(name, &members[name], depth, out);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    indent(depth, out);
                }
                out.push_str("- ");
                if is_block(item) {
                    write_block(item, depth + 1, out);
                } else {
                    write_scalar(item, depth + 1, out);
                }
            }
        }
        _ => {}
    }
}

fn write_member(name: &str, value: &Value, depth: usize, out: &mut String) {
    out.push_str(&text(name));
    out.push(':');
    match value {
        Value::Object(_) if is_block(value) => {
            out.push('\n');
            indent(depth + 1, out);
            write_block(value, depth + 1, out);
        }
        Value::Array(_) if is_block(value) => {
            out.push('\n');
            indent(depth, out);
            write_block(value, depth, out);
        }
        _ => {
            out.push(' ');
            write_scalar(value, depth + 1, out);
        }
    }
}

fn write_scalar(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::String(string) if is_literal(string) => {
            out.push('|');
            match string.len() - string.trim_end_matches('\n').len() {
                0 => out.push('-'),
                1 => {}
                _ => out.push('+'),
            }
            out.push('\n');
            for line in string.strip_suffix('\n').unwrap_or(string).split('\n') {
                if !line.is_empty() {
                    indent(depth, out);
                    out.push_str(line);
                }
                out.push('\n');
            }
        }
        _ => {
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Returns whether a multi-line text can be written as a literal block.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.chars().any(|char| char.is_control() && char != '\n')
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// Formats a text in the plainest style that parses as the same text.
fn text(text: &str) -> String {
    if text.chars().any(char::is_control) {
        // A JSON string is a YAML string in double quotes.
        return Value::from(text).to_string();
    }
    if is_plain(text) {
        return text.to_owned();
    }
    if reads_as_other(text) {
        return format!("\"{text}\"");
    }
    format!("'{}'", text.replace('\'', "''"))
}

fn is_plain(text: &str) -> bool {
    let starts_well = text.chars().next().is_some_and(|first| !"-?:,[]{}#&*!|>'\"%@` ".contains(first));
    let dash_is_fine =
        text.starts_with('-') && text.len() > 1 && !text.starts_with("- ") && !text.starts_with("--");
    (starts_well || dash_is_fine)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !reads_as_other(text)
}

/// Returns whether a parser would take the text for a number, a date, a boolean or null.
fn reads_as_other(text: &str) -> bool {
    const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "="];
    let lower = text.to_ascii_lowercase();
    let is_number = text
        .starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'))
        && (text.replace('_', "").parse::<f64>().is_ok()
            || lower.starts_with("0x")
            || lower.starts_with("0o")
            || lower.starts_with("0b")
            || matches!(lower.trim_start_matches(['+', '-']), ".inf" | ".nan")
            || is_sexagesimal(text));
    let is_date = text.len() >= 10
        && text.as_bytes().iter().take(4).all(u8::is_ascii_digit)
        && text.as_bytes().get(4) == Some(&b'-')
        && text.as_bytes().get(7) == Some(&b'-');
    text.is_empty() || WORDS.contains(&lower.as_str()) || is_number || is_date
}

/// Returns whether some parsers take the text for a base-60 number, such as `12:30:45`.
fn is_sexagesimal(text: &str) -> bool {
    text.contains(':')
        && text.split(':').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_output_equals_that_of_kube_apiserver() {
        let value = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "12"},
            "data": {"t": "true", "empty": "", "lines": "a\nb\n", "colon": "a: b", "quote": "it's: x"},
            "items": [{"a": 1, "b": [1, 2]}, [], {}, "x"], "none": null,
        });
        let expected = "\
apiVersion: v1
data:
  colon: 'a: b'
  empty: \"\"
  lines: |
    a
    b
  quote: 'it''s: x'
  t: \"true\"
items:
- a: 1
  b:
  - 1
  - 2
- []
- {}
- x
kind: ConfigMap
metadata:
  creationTimestamp: \"2026-01-01T00:00:00Z\"
  name: a
  resourceVersion: \"12\"
none: null
";
        assert_eq!(write(&value), expected);
    }
}
