//! Field selectors: `metadata.name=a,spec.nodeName!=n1`.

use super::label::SelectorError;
use crate::storage::Content;

/// A field selector; the empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    /// Whether the field must have the value, or must not.
    is_equal: bool,
}

impl FieldSelector {
    /// Reads a selector as it stands in a query.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let Some((field, is_equal, value)) = split_term(part) else {
                return Err(SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            let value = unescape(value).ok_or_else(|| {
                SelectorError(format!("invalid field selector: invalid escape sequence in value: {value}"))
            })?;
            terms.push(Term { field: field.to_owned(), value, is_equal });
        }
        Ok(Self { terms })
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Gives each field the name `rename` has for it.
    pub(crate) fn rename<E>(&mut self, rename: impl Fn(&str) -> Result<String, E>) -> Result<(), E> {
        for term in &mut self.terms {
            term.field = rename(&term.field)?;
        }
        Ok(())
    }

    /// Asks for one value of a field as well.
    pub(crate) fn require(&mut self, field: &str, value: &str) {
        self.terms.push(Term { field: field.to_owned(), value: value.to_owned(), is_equal: true });
    }

    /// Returns the value that the selector requires of `field`, if it requires one.
    pub(crate) fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.is_equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, content: &Content) -> bool {
        self.terms.iter().all(|term| {
            let value = match term.field.as_str() {
                "metadata.name" => &*content.name,
                "metadata.namespace" => &*content.namespace,
                field => content.field(field),
            };
            (value == term.value) == term.is_equal
        })
    }
}

/// Splits at commas that no backslash stands before.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (place, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let place = term.char_indices().map(|(place, _)| place).find(|place| {
        let rest = &term[*place..];
        rest.starts_with("!=") || rest.starts_with('=')
    })?;
    let (field, rest) = term.split_at(place);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

/// Takes the backslashes away; none if one stands before anything but a backslash, a comma or an equals sign, or if one
/// of those is missing.
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
    fn terms_are_split_and_unescaped() {
        let selector = FieldSelector::parse(r"a=1,b!=2,,c==x\,y\=z\\").unwrap();
        let terms: Vec<_> =
            selector.terms.iter().map(|term| (&*term.field, term.is_equal, &*term.value)).collect();
        assert_eq!(terms, [("a", true, "1"), ("b", false, "2"), ("c", true, "x,y=z\\")]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in ["bad", "metadata.name in (a)", "a=b=c", r"a=\x", r"a=b\"] {
            assert!(FieldSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_that_is_not_there_counts_as_empty() {
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
        ] {
            assert_eq!(FieldSelector::parse(selector).unwrap().matches(&content), expected, "{selector}");
        }
    }
}
