//! Names of properties in CEL expressions.

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns whether a word is reserved in CEL.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns the identifier of a property. `None` if CEL cannot express the name.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')) {
        return None;
    }
    Some(
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}

/// Returns the property of an identifier. `None` if the identifier contains an unknown escape sequence.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut result = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find("__") {
        let (before, from) = rest.split_at(start);
        let inner = from.get(2..).unwrap_or_default();
        let end = inner.find('_').unwrap_or(inner.len());
        let (word, after) = inner.split_at(end);
        let Some(after) = after.strip_prefix("__").filter(|_| !word.is_empty()) else {
            // Underscores that do not start an escape sequence are literal.
            let (kept, later) = rest.split_at(start + 1);
            result.push_str(kept);
            rest = later;
            continue;
        };
        result.push_str(before);
        match word {
            "underscores" => result.push_str("__"),
            "dot" => result.push('.'),
            "dash" => result.push('-'),
            "slash" => result.push('/'),
            word if is_reserved(word) && name.len() == word.len() + 4 => result.push_str(word),
            _ => return None,
        }
        rest = after;
    }
    result.push_str(rest);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn names_survive_escaping_and_unknown_escapes_are_rejected() {
        for name in ["a", "a-b", "a.b/c", "a__b", "namespace", "in", "_a_", "x__dash__y", "if"] {
            let escaped = escape(name).unwrap();
            assert_eq!(unescape(&escaped).as_deref(), Some(name), "{escaped}");
        }
        assert_eq!(escape("namespace").as_deref(), Some("__namespace__"));
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("a b"), None);
        assert_eq!(unescape("namespace").as_deref(), Some("namespace"));
        assert_eq!(unescape("__nope__"), None);
        assert_eq!(unescape("a__if__"), None);
    }
}
