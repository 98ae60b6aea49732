//! Field selectors: `metadata.name=a,spec.nodeName!=n1`.

use std::collections::{BTreeMap, BTreeSet};

use super::label::SelectorError;
use crate::{
    field::{MAX_TEXT_BYTES, cut},
    storage::Content,
};

/// A field selector. The empty selector matches everything.
///
/// Terms are grouped by field, so that the number of terms matters only for parsing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    by_field: BTreeMap<String, FieldRequirement>,
}

/// The conjunction of all terms on one field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FieldRequirement {
    /// The required values. With more than one, no object matches.
    is: BTreeSet<String>,
    /// The excluded values.
    is_not: BTreeSet<String>,
}

impl FieldRequirement {
    fn allow(&self, value: &str) -> bool {
        let is_equal = match self.is.len() {
            0 => true,
            1 => self.is.contains(value),
            _ => false,
        };
        is_equal && !self.is_not.contains(value)
    }
}

impl FieldSelector {
    /// Parses a selector of a query.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut selector = Self::default();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let Some((field, is_equal, value)) = split_term(part) else {
                let (text, part) =
                    (cut(text.to_owned(), MAX_TEXT_BYTES), cut(part.to_owned(), MAX_TEXT_BYTES));
                return Err(SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            let value = unescape(value).ok_or_else(|| {
                SelectorError(format!("invalid field selector: invalid escape sequence in value: {value}"))
            })?;
            selector.add(field, is_equal, value);
        }
        Ok(selector)
    }

    fn add(&mut self, field: &str, is_equal: bool, value: String) {
        let terms = self.by_field.entry(field.to_owned()).or_default();
        if is_equal {
            terms.is.insert(value)
        } else {
            terms.is_not.insert(value)
        };
    }

    /// Returns whether the selector matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_field.is_empty()
    }

    /// Renames each field by `rename`.
    pub(crate) fn rename<E>(&mut self, rename: impl Fn(&str) -> Result<String, E>) -> Result<(), E> {
        for (field, terms) in std::mem::take(&mut self.by_field) {
            let known = self.by_field.entry(rename(&field)?).or_default();
            known.is.extend(terms.is);
            known.is_not.extend(terms.is_not);
        }
        Ok(())
    }

    /// Adds a required value of a field.
    pub(crate) fn require(&mut self, field: &str, value: &str) {
        self.add(field, true, value.to_owned());
    }

    /// Returns the value that the selector requires of `field`, if it requires one.
    pub(crate) fn required(&self, field: &str) -> Option<&str> {
        self.by_field.get(field)?.is.first().map(String::as_str)
    }

    /// Returns whether an object matches.
    pub(crate) fn matches(&self, content: &Content) -> bool {
        self.by_field.iter().all(|(field, terms)| {
            terms.allow(match field.as_str() {
                "metadata.name" => &content.name,
                "metadata.namespace" => &content.namespace,
                field => content.field(field),
            })
        })
    }
}

/// Splits at commas without a backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (index, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let index = term.char_indices().map(|(index, _)| index).find(|index| {
        let rest = &term[*index..];
        rest.starts_with("!=") || rest.starts_with('=')
    })?;
    let (field, rest) = term.split_at(index);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

/// Removes the escapes. Returns none if a backslash precedes anything but a backslash, a comma or an equals sign, or if such
/// a character is not escaped.
fn unescape(value: &str) -> Option<String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => out.push(chars.next().filter(|char| matches!(char, '\\' | ',' | '='))?),
            ',' | '=' => return None,
            _ => out.push(char),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_selector_terms_are_split_and_unescaped() {
        let selector = FieldSelector::parse(r"a=1,b!=2,,c==x\,y\=z\\").unwrap();
        let mut expected = FieldSelector::default();
        for (field, is_equal, value) in [("a", true, "1"), ("b", false, "2"), ("c", true, "x,y=z\\")] {
            expected.add(field, is_equal, value.to_owned());
        }
        assert_eq!(selector, expected);
    }

    #[test]
    fn invalid_field_selectors_are_rejected() {
        for text in ["bad", "metadata.name in (a)", "a=b=c", r"a=\x", r"a=b\"] {
            assert!(FieldSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_absent_field_counts_as_empty() {
        let object = json!({"metadata": {"name": "x", "namespace": "ns"}});
        let fields = Box::new([("spec.nodeName".into(), "n1".into())]);
        let content = Content::new(&object, fields).unwrap();
        for (selector, expected) in [
            ("metadata.name=x", true),
            ("metadata.name!=x", false),
            ("metadata.namespace=ns,metadata.name=x", true),
            ("spec.nodeName=n1", true),
            ("spec.nodeName=", false),
            ("status.phase=", true),
            ("status.phase!=Running", true),
            ("metadata.name=x,metadata.name=x", true),
            ("metadata.name=x,metadata.name=y", false),
            ("metadata.name!=y,metadata.name!=z", true),
            ("metadata.name!=y,metadata.name!=x", false),
        ] {
            assert_eq!(FieldSelector::parse(selector).unwrap().matches(&content), expected, "{selector}");
        }
    }
}
