//! `Warning` headers.

use std::collections::HashSet;

use http::{HeaderMap, HeaderValue, header};

/// The maximum number of characters of all warnings of a response, beyond which each is truncated.
const TOTAL_CHARACTERS: usize = 4 * 1024;
/// The maximum number of characters of a truncated warning.
const TRUNCATED_CHARACTERS: usize = 256;
/// The maximum number of warnings of a response. Common HTTP clients reject a response with more than 100 headers.
const MAX_WARNINGS: usize = 64;

/// Adds a header for each distinct warning. Warnings that are too long in total are truncated, and those that still do not
/// fit are omitted.
pub(super) fn add(headers: &mut HeaderMap, warnings: &[String]) {
    for text in limited(warnings) {
        if let Ok(value) = HeaderValue::try_from(format!("299 - {}", quoted(text))) {
            headers.append(header::WARNING, value);
        }
    }
}

fn limited(warnings: &[String]) -> Vec<&str> {
    let mut seen = HashSet::new();
    let texts = warnings.iter().map(String::as_str).filter(|text| !text.is_empty());
    let distinct: Vec<&str> = texts.filter(|text| seen.insert(*text)).take(MAX_WARNINGS).collect();
    let characters = |text: &str| text.chars().count();
    if distinct.iter().map(|text| characters(text)).sum::<usize>() <= TOTAL_CHARACTERS {
        return distinct;
    }
    let mut written = 0;
    let mut limited = Vec::new();
    for text in distinct {
        if written >= TOTAL_CHARACTERS {
            break;
        }
        let text = match text.char_indices().nth(TRUNCATED_CHARACTERS) {
            Some((end, _)) => text.get(..end).unwrap_or(text),
            None => text,
        };
        written += characters(text);
        limited.push(text);
    }
    limited
}

/// Quotes a string for a header: control characters are removed, quotes and backslashes escaped.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars().filter(|char| !char.is_control()) {
        if matches!(char, '"' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(warnings: &[String]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        add(&mut headers, warnings);
        let texts = headers.get_all(header::WARNING).iter();
        texts.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn warnings_are_deduplicated_and_quoted() {
        let warnings = ["say \"a\"\n", "say \"a\"\n", "", "b"].map(String::from);
        assert_eq!(headers(&warnings), ["299 - \"say \\\"a\\\"\"", "299 - \"b\""]);
    }

    #[test]
    fn warnings_beyond_the_total_length_limit_are_truncated() {
        let warnings = ["a".repeat(TOTAL_CHARACTERS), "ä".repeat(300), "short".to_owned()];
        let lengths: Vec<usize> =
            headers(&warnings).iter().map(|text| text.chars().count() - "299 - \"\"".len()).collect();
        assert_eq!(lengths, [TRUNCATED_CHARACTERS, TRUNCATED_CHARACTERS, 5]);
        let one = headers(&["a".repeat(TOTAL_CHARACTERS)]);
        assert_eq!(one[0].len(), TOTAL_CHARACTERS + "299 - \"\"".len());
    }

    #[test]
    fn thousands_of_warnings_are_fewer_headers_than_clients_accept() {
        for length in [1, 10, 100, 1_000] {
            let warnings: Vec<String> =
                (0..5_000).map(|number| format!("{number}{}", "x".repeat(length))).collect();
            let headers = headers(&warnings);
            assert!(headers.len() <= MAX_WARNINGS, "{length}");
            let total: usize = headers.iter().map(String::len).sum();
            assert!(total <= TOTAL_CHARACTERS + TRUNCATED_CHARACTERS + 10 * MAX_WARNINGS, "{length}");
        }
    }
}
