//! Label selectors: `app in (a, b),tier!=web,!canary,size>3`.

use std::collections::{BTreeMap, BTreeSet};

use crate::storage::Content;

/// A label selector. The empty selector matches everything.
///
/// Requirements are grouped by key, so that only the requirements on the labels of an object are evaluated. The number of
/// requirements matters only for parsing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    by_key: BTreeMap<String, KeyRequirement>,
    /// The number of keys that must be present.
    needed: usize,
}

/// The conjunction of all requirements on one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct KeyRequirement {
    must_exist: bool,
    must_be_absent: bool,
    /// The permitted values.
    among: Option<BTreeSet<String>>,
    /// The excluded values.
    not_among: BTreeSet<String>,
    above: Option<i64>,
    below: Option<i64>,
}

impl KeyRequirement {
    fn add(&mut self, operator: Operator) {
        match operator {
            Operator::Absent => self.must_be_absent = true,
            Operator::NotIn(mut values) => {
                // The smaller set is merged into the larger one.
                if values.len() > self.not_among.len() {
                    std::mem::swap(&mut values, &mut self.not_among);
                }
                self.not_among.extend(values);
            }
            Operator::Exists => self.must_exist = true,
            Operator::In(values) => {
                self.must_exist = true;
                self.among = Some(match self.among.take() {
                    Some(mut known) => {
                        known.retain(|value| values.contains(value));
                        known
                    }
                    None => values,
                });
            }
            Operator::Above(bound) => {
                self.must_exist = true;
                self.above = Some(self.above.map_or(bound, |known| known.max(bound)));
            }
            Operator::Below(bound) => {
                self.must_exist = true;
                self.below = Some(self.below.map_or(bound, |known| known.min(bound)));
            }
        }
    }

    /// Returns whether a present label may have this value.
    fn allows(&self, value: &str) -> bool {
        let number = || value.parse::<i64>().ok();
        !self.must_be_absent
            && self.among.as_ref().is_none_or(|among| among.contains(value))
            && !self.not_among.contains(value)
            && self.above.is_none_or(|bound| number().is_some_and(|number| number > bound))
            && self.below.is_none_or(|bound| number().is_some_and(|number| number < bound))
    }
}

/// The error for a malformed selector. The text is the message for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SelectorError(pub(crate) String);

/// The operator of one requirement, with its values.
#[derive(Debug)]
enum Operator {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Parses a selector of a query.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser { tokens: tokens(text), next: 0 }.selector()
    }

    /// Returns whether the selector matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns whether an object with the labels of `content` matches.
    pub(crate) fn matches(&self, content: &Content) -> bool {
        let labels = &content.labels;
        if self.needed > labels.len() {
            return false;
        }
        if self.by_key.len() <= labels.len() {
            return self.by_key.iter().all(|(key, condition)| match content.label(key) {
                Some(value) => condition.allows(value),
                None => !condition.must_exist,
            });
        }
        let mut needed = self.needed;
        for (key, value) in labels {
            if let Some(condition) = self.by_key.get(&**key) {
                if !condition.allows(value) {
                    return false;
                }
                needed -= usize::from(condition.must_exist);
            }
        }
        needed == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

const SYMBOLS: &str = "=!(),<>";

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while let Some(first) = rest.chars().next() {
        let length = if SYMBOLS.contains(first) {
            if ["==", "!="].iter().any(|pair| rest.starts_with(pair)) { 2 } else { 1 }
        } else {
            rest.find(|char: char| SYMBOLS.contains(char) || matches!(char, ' ' | '\t' | '\r' | '\n'))
                .unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        tokens.push(if SYMBOLS.contains(first) { Token::Symbol(token) } else { Token::Word(token) });
        rest = after.trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn selector(mut self) -> Result<LabelSelector, SelectorError> {
        let mut selector = LabelSelector::default();
        loop {
            match self.peek() {
                Token::End => break,
                Token::Word(_) | Token::Symbol("!") => {}
                Token::Symbol(other) => {
                    return Err(SelectorError(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
            let (key, operator) = self
                .requirement()
                .map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?;
            selector.by_key.entry(key.to_owned()).or_default().add(operator);
            match self.take() {
                Token::End => break,
                Token::Symbol(",") => {
                    let next = self.peek();
                    if !matches!(next, Token::Word(_) | Token::Symbol("!")) {
                        return Err(SelectorError(format!(
                            "found '{}', expected: identifier after ','",
                            next.text()
                        )));
                    }
                }
                other => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        other.text()
                    )));
                }
            }
        }
        selector.needed = selector.by_key.values().filter(|condition| condition.must_exist).count();
        Ok(selector)
    }

    fn requirement(&mut self) -> Result<(&'a str, Operator), SelectorError> {
        let is_negated = self.peek() == Token::Symbol("!");
        if is_negated {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(SelectorError(format!("found '{}', expected: identifier", other.text()))),
        };
        check_key(key)?;
        let operator = if is_negated {
            Operator::Absent
        } else if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            Operator::Exists
        } else {
            self.operator(key)?
        };
        Ok((key, operator))
    }

    fn operator(&mut self, key: &str) -> Result<Operator, SelectorError> {
        let operator = self.take();
        match operator.text() {
            word @ ("in" | "notin") => {
                let values = self.values()?;
                check_values(key, &values)?;
                Ok(if word == "in" { Operator::In(values) } else { Operator::NotIn(values) })
            }
            symbol @ ("=" | "==" | "!=") => {
                let values = BTreeSet::from([self.exact_value()?]);
                check_values(key, &values)?;
                Ok(if symbol == "!=" { Operator::NotIn(values) } else { Operator::In(values) })
            }
            symbol @ (">" | "<") => {
                let value = self.exact_value()?;
                let bound = value.parse().map_err(|_| {
                    SelectorError(format!(
                        "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                    ))
                })?;
                Ok(if symbol == ">" { Operator::Above(bound) } else { Operator::Below(bound) })
            }
            other => Err(SelectorError(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"))),
        }
    }

    fn exact_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(SelectorError(format!("found '{}', expected: identifier", other.text()))),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        let open = self.take();
        if open != Token::Symbol("(") {
            return Err(SelectorError(format!("found '{}' expected: '('", open.text())));
        }
        let mut values = BTreeSet::new();
        // A missing item, as in `(a,)` or `(,a)`, is the empty value.
        let mut is_item_due = true;
        loop {
            match self.take() {
                Token::Word(value) if is_item_due => {
                    values.insert(value.to_owned());
                    is_item_due = false;
                }
                Token::Symbol(",") => {
                    if is_item_due {
                        values.insert(String::new());
                    }
                    is_item_due = true;
                }
                Token::Symbol(")") => {
                    // `()` is also the set of the empty value.
                    if is_item_due {
                        values.insert(String::new());
                    }
                    return Ok(values);
                }
                other => {
                    return Err(SelectorError(format!("found '{}', expected: ',' or ')'", other.text())));
                }
            }
        }
    }
}

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                    is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn is_qualified(name: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            bytes.first().is_some_and(is_plain)
                && bytes.last().is_some_and(is_plain)
                && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
        })
}

fn check_key(key: &str) -> Result<(), SelectorError> {
    let invalid = |detail: String| Err(SelectorError(format!("<nil>: Invalid value: {key:?}: {detail}")));
    let mut parts = key.split('/');
    let (prefix, name) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => (None, name),
        (Some(prefix), Some(name), None) => (Some(prefix), name),
        _ => {
            return invalid(format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
    };
    match prefix {
        Some("") => return invalid("prefix part must be non-empty".into()),
        Some(prefix) if !is_subdomain(prefix) => {
            return invalid("prefix part must be a lowercase RFC 1123 subdomain".into());
        }
        _ => {}
    }
    if name.is_empty() {
        invalid("name part must be non-empty".into())
    } else if name.len() > 63 {
        invalid("name part must be no more than 63 bytes".into())
    } else if is_qualified(name) {
        Ok(())
    } else {
        invalid(format!("name part {NAME}"))
    }
}

fn check_values(key: &str, values: &BTreeSet<String>) -> Result<(), SelectorError> {
    for (index, value) in values.iter().enumerate() {
        let detail = if value.len() > 63 {
            "must be no more than 63 bytes".to_owned()
        } else if !value.is_empty() && !is_qualified(value) {
            format!("a valid label must be an empty string or {NAME}")
        } else {
            continue;
        };
        return Err(SelectorError(format!("values[{index}][{key}]: Invalid value: {value:?}: {detail}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: &serde_json::Value) -> bool {
        let object = json!({"metadata": {"name": "x", "labels": labels}});
        LabelSelector::parse(selector).unwrap().matches(&Content::new(&object, Box::default()).unwrap())
    }

    #[test]
    fn each_operator_selects_matching_labels() {
        let labels = json!({"app": "web", "size": "10", "empty": "", "example.com/x": "1"});
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("app=web", true),
            ("app==web", true),
            ("app = web , size", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web,db)", true),
            ("app in ( db )", false),
            ("app notin (web)", false),
            ("other notin (web)", true),
            ("size>9", true),
            ("size>10", false),
            ("size<11", true),
            ("app>1", false),
            ("empty=", true),
            ("empty in (,a)", true),
            ("empty in (a,)", true),
            ("empty in ()", true),
            ("app in ()", false),
            ("app notin ()", true),
            ("app=", false),
            ("app=web,size=11", false),
            ("example.com/x=1", true),
            ("in in (in)", false),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn requirements_on_one_key_are_combined_with_and() {
        let labels = json!({"app": "web", "size": "10"});
        for (selector, expected) in [
            ("app in (web,db),app in (web,x)", true),
            ("app in (web,db),app in (db,x)", false),
            ("app!=db,app!=x,app notin (y,z)", true),
            ("app!=db,app!=x,app notin (web,z)", false),
            ("app,!app", false),
            ("other!=a,!other", true),
            ("size>3,size>9,size<20,size<11", true),
            ("size>3,size>10", false),
            ("size<20,size<10", false),
            ("app=web,size=10,other", false),
            ("app=web,size=10,!a,!b,!c,d!=1", true),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn invalid_selectors_are_rejected_with_the_message_of_kube_apiserver() {
        for (selector, message) in [
            ("=x", "found '=', expected: !, identifier, or 'end of string'"),
            ("app in x", "unable to parse requirement: found 'x' expected: '('"),
            ("app in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("app===x", "unable to parse requirement: found '=', expected: identifier"),
            (
                "app>abc",
                "unable to parse requirement: values[0]: Invalid value: \"abc\": for 'Gt', 'Lt' operators, the value \
                 must be an integer",
            ),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("app=x y", "found 'y', expected: ',' or 'end of string'"),
            ("app=x,", "found '', expected: identifier after ','"),
            ("!!", "unable to parse requirement: found '!', expected: identifier"),
            ("app notin", "unable to parse requirement: found '' expected: '('"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err().to_string(), message);
        }
        for selector in ["-bad=1", "x/y/z=1", "/a=1", "a/=1", "A/b=1", "app=-", "app in (a b)"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
        assert!(LabelSelector::parse(&format!("app={}", "v".repeat(64))).is_err());
    }
}
