//! Patterns of schemas, with limits on memory and time.

use std::{collections::HashMap, fmt, iter::Peekable, str::Chars};

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
    /// Returns an explanation if the pattern is malformed or too large.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let translated = translate(text);
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

/// Translates a pattern from Go's RE2 syntax to that of the crate `regex`.
///
/// Digits, words and spaces are those of ASCII. Those of Unicode take hundreds of times as much memory. Within a class,
/// `[`, `&`, `~` and a `-` that makes no range stand for themselves.
fn translate(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                escape(&mut letters, &mut translated);
            }
            '[' => class(&mut letters, &mut translated),
            _ => translated.push(letter),
        }
    }
    translated
}

/// Translates an escape after its backslash. Returns whether it is a class.
fn escape(letters: &mut Peekable<Chars<'_>>, translated: &mut String) -> bool {
    let letter = letters.next();
    // A class within a class is their union.
    let class = match letter {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('s') => r"[\t\n\f\r ]",
        Some('S') => r"[^\t\n\f\r ]",
        other => {
            translated.push('\\');
            translated.extend(other);
            return false;
        }
    };
    translated.push_str(class);
    true
}

/// Translates a class after its opening bracket.
fn class(letters: &mut Peekable<Chars<'_>>, translated: &mut String) {
    translated.push('[');
    translated.extend(letters.next_if_eq(&'^'));
    // The first member can be a bracket.
    if letters.next_if_eq(&']').is_some() {
        translated.push_str("\\]");
    }
    // Whether a `-` after the last member makes a range, and whether the next member ends one.
    let (mut can_begin, mut is_end) = (translated.ends_with(']'), false);
    while let Some(letter) = letters.next() {
        let mut is_class = false;
        match letter {
            ']' => {
                translated.push(']');
                return;
            }
            '\\' => is_class = escape(letters, translated),
            '[' if letters.peek() == Some(&':') => {
                is_class = true;
                translated.push('[');
                while let Some(letter) = letters.next_if(|letter| *letter != ']') {
                    translated.push(letter);
                }
                translated.extend(letters.next());
            }
            '-' if can_begin && letters.peek() != Some(&']') => {
                translated.push('-');
                (can_begin, is_end) = (false, true);
                continue;
            }
            '[' | '&' | '~' | '-' => translated.extend(['\\', letter]),
            _ => translated.push(letter),
        }
        (can_begin, is_end) = (!is_class && !is_end, false);
    }
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
    /// Returns the errors of [`Pattern::new`], and one if the patterns of the schema together take too much
    /// memory.
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
    pub(crate) fn are_within_limit(schema: &Value) -> bool {
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
    fn patterns_that_need_too_much_memory_are_rejected() {
        assert!(
            Pattern::new(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
                .is_ok_and(|pattern| pattern.is_match("a-b"))
        );
        assert!(Pattern::new(r"\pL{1000}").is_err());
        assert!(Pattern::new("((a{100}){100}){100}").is_err());
        assert!(Pattern::new("(").is_err());
    }

    #[test]
    fn character_classes_match_ascii_only() {
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
    fn bracket_expressions_match_as_in_re2() {
        for (pattern, text, is_match) in [
            (r#"^[^()<>@,;:\\"\/[\]?={} \t\x7f]+$"#, "name", true),
            (r#"^[^()<>@,;:\\"\/[\]?={} \t\x7f]+$"#, "na[me", false),
            ("^[a[]+$", "a[", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[a~~b]+$", "a~b", true),
            ("^[]a]+$", "]a", true),
            ("^[^]a]+$", "]", false),
            ("^[+--]+$", "+,-", true),
            ("^[--/]+$", "-./", true),
            ("^[--/]+$", "+", false),
            ("^[a-c-e]+$", "b-e", true),
            ("^[a-c-e]+$", "d", false),
            (r"^[\d-z]+$", "1-z", true),
            ("^[[:alpha:]_-]+$", "a_-", true),
            ("^[[:alpha:]_-]+$", ":", false),
            (r"^[\x00-\x1f]$", "\n", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().is_match(text), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn the_pattern_size_limit_of_a_schema_counts_equal_patterns_once() {
        let schema = |distinct: usize| {
            let patterns =
                (0..500).map(|number| json!({"pattern": format!("^\\pL{{20}}{}", number % distinct)}));
            json!({"anyOf": patterns.collect::<Vec<_>>()})
        };
        assert!(Patterns::are_within_limit(&schema(1)));
        assert!(!Patterns::are_within_limit(&schema(500)));
    }

    #[test]
    fn matching_a_larger_pattern_costs_more_steps() {
        let (small, large) = (Pattern::new("^a$").unwrap(), Pattern::new(r"^\pL{20}$").unwrap());
        assert!(large.steps("aaaa aaaa aaaa") > small.steps("aaaa aaaa aaaa"));
    }
}
