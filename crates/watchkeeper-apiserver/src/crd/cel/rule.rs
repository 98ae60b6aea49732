//! A rule of a schema.

use serde_json::Value;

use super::compile::Compiled;
use crate::field::FieldErrorKind;

/// A compiled rule of a schema.
#[derive(Debug)]
pub(crate) struct ValidationRule {
    pub(super) source: String,
    pub(super) program: Compiled,
    pub(super) message: String,
    pub(super) message_source: String,
    pub(super) message_program: Option<Compiled>,
    pub(super) kind: FieldErrorKind,
    /// The field below the value at which an error is reported.
    pub(super) field_path: String,
    /// Whether the rule compares a value with the value before a change.
    pub(super) is_transition: bool,
    /// Whether a transition rule also runs for new values.
    pub(super) has_optional_old: bool,
}

impl ValidationRule {
    /// Returns the rules of a schema. A rule that does not parse is omitted, because its definition was rejected.
    pub(crate) fn read_all(schema: &Value) -> Vec<Self> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(|rule| Self::read(rule, schema)).collect()
    }

    fn read(rule: &Value, schema: &Value) -> Option<Self> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("rule").trim().is_empty() {
            return None;
        }
        let program = Compiled::new(text("rule")).ok()?;
        Some(Self {
            is_transition: program.uses_old_self(),
            has_optional_old: rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
            message: text("message").trim().to_owned(),
            message_source: text("messageExpression").to_owned(),
            message_program: Some(text("messageExpression"))
                .filter(|source| !source.is_empty())
                .and_then(|source| Compiled::new(source).ok()),
            kind: match text("reason") {
                "FieldValueRequired" => FieldErrorKind::Required,
                "FieldValueForbidden" => FieldErrorKind::Forbidden,
                "FieldValueDuplicate" => FieldErrorKind::Duplicate,
                _ => FieldErrorKind::Invalid,
            },
            field_path: field_path(schema, text("fieldPath")).unwrap_or_default(),
            source: text("rule").trim().to_owned(),
            program,
        })
    }

    /// Returns the message of the rule, or its text.
    pub(super) fn describe(&self) -> &str {
        if self.message.is_empty() { &self.source } else { &self.message }
    }
}

/// A step of a field path.
enum Step {
    Property(String),
    Key(String),
}

/// Returns a path such as `.a['b.c']` as shown in errors. `None` if the path is not in the schema.
pub(crate) fn field_path(schema: &Value, path: &str) -> Option<String> {
    let mut formatted = String::new();
    for step in steps(schema, path)? {
        match step {
            Step::Property(name) if formatted.is_empty() => formatted = name,
            Step::Property(name) => formatted = format!("{formatted}.{name}"),
            Step::Key(name) => formatted = format!("{formatted}[{name}]"),
        }
    }
    Some(formatted)
}

fn steps(schema: &Value, path: &str) -> Option<Vec<Step>> {
    let mut schema = schema;
    let mut rest = path;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('[') {
            let quoted = after.strip_prefix('\'')?;
            let end = closing_quote(quoted)?;
            let (inner, after) = quoted.split_at(end);
            name = unescape(inner)?;
            rest = after.strip_prefix("']")?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            let (inner, after) = after.split_at(end);
            if inner.is_empty() {
                return None;
            }
            name = inner.to_owned();
            rest = after;
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            schema = properties.get(&name)?;
            steps.push(Step::Property(name));
        } else {
            schema = schema.get("additionalProperties").filter(|of| of.is_object())?;
            steps.push(Step::Key(name));
        }
    }
    Some(steps)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let closes = c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        closes.then_some(at)
    })
}

fn unescape(text: &str) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        result.push(if c == '\\' {
            match chars.next()? {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                '\'' => '\'',
                '\\' => '\\',
                _ => return None,
            }
        } else {
            c
        });
    }
    Some(result)
}
