//! Patterns of schemas, with limits on memory and time.

use std::{collections::HashMap, fmt};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// The size limits with which a pattern is compiled, smallest first. The first sufficient limit is the size of the pattern.
const SIZES: [usize; 4] = [16 * 1024, 64 * 1024, 256 * 1024, MAX_BYTES];

/// The maximum size of a compiled pattern, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// The maximum memory of all patterns of one schema, in bytes.
const MAX_TOTAL_BYTES: usize = 32 * 1024 * 1024;

/// The memory for the states of a running pattern, in bytes.
const CACHE_BYTES: usize = 256 * 1024;

/// A compiled pattern of a schema.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
    bytes: usize,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// An explanation if the pattern is malformed or too large.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let translated = with_ascii_classes(text);
        let mut refused = String::new();
        for bytes in SIZES {
            match RegexBuilder::new(&translated).size_limit(bytes).dfa_size_limit(CACHE_BYTES).build() {
                Ok(regex) => return Ok(Self { text: text.to_owned(), regex, bytes }),
                Err(error @ regex::Error::CompiledTooBig(_)) => refused = error.to_string(),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(refused)
    }

    /// Returns whether the pattern matches somewhere in `text`.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the maximum number of steps of a search in `text`, in the units of validation. The worst case is proportional
    /// to the length of the text times the size of the pattern.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        let steps = (text.len() as u64).saturating_mul(self.bytes as u64) / SIZES[0] as u64;
        steps / 8 + 1
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(formatter)
    }
}

/// Returns the pattern with ASCII classes for digits, words and spaces, as in Go. Unicode classes take hundreds of times as
/// much memory.
fn with_ascii_classes(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            translated.push(letter);
            continue;
        }
        // A class within a class is their union.
        match letters.next() {
            Some('d') => translated.push_str("[0-9]"),
            Some('D') => translated.push_str("[^0-9]"),
            Some('w') => translated.push_str("[0-9A-Za-z_]"),
            Some('W') => translated.push_str("[^0-9A-Za-z_]"),
            Some('s') => translated.push_str(r"[\t\n\f\r ]"),
            Some('S') => translated.push_str(r"[^\t\n\f\r ]"),
            other => {
                translated.push('\\');
                translated.extend(other);
            }
        }
    }
    translated
}

/// The patterns of one schema, each compiled once.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    compiled: HashMap<String, Result<Pattern, String>>,
    bytes: usize,
}

impl Patterns {
    /// Compiles a pattern, or returns the one compiled before.
    ///
    /// # Errors
    /// The errors of [`Pattern::new`], and one if the patterns of the schema together take too much memory.
    pub(crate) fn compile(&mut self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.compiled.get(text) {
            return known.clone();
        }
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(format!("the patterns of the schema take more than {MAX_TOTAL_BYTES} bytes"));
        }
        let pattern = Pattern::new(text);
        self.bytes += pattern.as_ref().map_or(0, |pattern| pattern.bytes);
        self.compiled.insert(text.to_owned(), pattern.clone());
        pattern
    }

    /// Returns whether all patterns of a schema can be compiled within the memory limit of one schema.
    pub(crate) fn fit(schema: &Value) -> bool {
        fn visit(schema: &Value, patterns: &mut Patterns) {
            match schema {
                Value::Object(members) => {
                    if let Some(Value::String(pattern)) = members.get("pattern") {
                        // All other errors are reported at the pattern.
                        let _ = patterns.compile(pattern);
                    }
                    members.values().for_each(|member| visit(member, patterns));
                }
                Value::Array(items) => items.iter().for_each(|item| visit(item, patterns)),
                _ => {}
            }
        }
        let mut patterns = Self::default();
        visit(schema, &mut patterns);
        patterns.bytes <= MAX_TOTAL_BYTES
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_that_take_much_memory_are_refused() {
        assert!(
            Pattern::new(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
                .is_ok_and(|pattern| pattern.is_match("a-b"))
        );
        assert!(Pattern::new(r"\pL{1000}").is_err());
        assert!(Pattern::new("((a{100}){100}){100}").is_err());
        assert!(Pattern::new("(").is_err());
    }

    #[test]
    fn classes_are_those_of_ascii() {
        for (pattern, text, is_match) in [
            (r"^\w{1,100}$", "aZ_9", true),
            (r"^\w+$", "ä", false),
            (r"^\d$", "٣", false),
            (r"^[\w.-]+$", "a-b.c", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[\D]$", "1", false),
            (r"^\\w$", r"\w", true),
            (r"^\S\W$", "a-", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().is_match(text), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn many_large_patterns_of_one_schema_are_refused_and_the_same_one_counts_once() {
        let schema = |distinct: usize| {
            let patterns =
                (0..500).map(|number| json!({"pattern": format!("^\\pL{{20}}{}", number % distinct)}));
            json!({"anyOf": patterns.collect::<Vec<_>>()})
        };
        assert!(Patterns::fit(&schema(1)));
        assert!(!Patterns::fit(&schema(500)));
    }

    #[test]
    fn a_larger_pattern_counts_more_steps() {
        let (small, large) = (Pattern::new("^a$").unwrap(), Pattern::new(r"^\pL{20}$").unwrap());
        assert!(large.steps("aaaa aaaa aaaa") > small.steps("aaaa aaaa aaaa"));
    }
}
