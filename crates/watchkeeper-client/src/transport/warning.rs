//! `Warning` headers of successful responses.

use std::{
    collections::{VecDeque, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, header::WARNING};

/// The maximum number of characters of one text; a server sends at most 4096 in total.
const TEXT_CHARACTERS: usize = 4096;

/// The maximum number of warnings that are delivered per response.
const WARNINGS: usize = 64;

/// A warning from the API server, such as the use of a deprecated version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The agent that issued the warning; `-` if unspecified.
    pub agent: String,
    /// The text of the warning, on one line.
    pub text: String,
}

/// A handler that receives the warnings of every response. The handler is called on the task that waits for
/// the response, so it must not block.
#[doc(alias = "WarningHandlerWithContext")]
pub trait WarningHandler: Send + Sync + 'static {
    /// Handles one warning.
    fn handle(&self, warning: &Warning);
}

/// A handler that logs each distinct text once. The last 256 texts are remembered.
#[derive(Debug, Default)]
#[doc(alias = "WarningLogger")]
#[doc(alias = "NewKubeAPIWarningLogger")]
pub struct LogWarnings {
    random: RandomState,
    seen: Mutex<VecDeque<u64>>,
}

impl LogWarnings {
    const MEMORY: usize = 256;

    fn is_new(&self, text: &str) -> bool {
        let hash = self.random.hash_one(text);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(&hash) {
            return false;
        }
        if seen.len() == Self::MEMORY {
            seen.pop_front();
        }
        seen.push_back(hash);
        true
    }
}

impl WarningHandler for LogWarnings {
    fn handle(&self, warning: &Warning) {
        if self.is_new(&warning.text) {
            tracing::warn!(agent = warning.agent, text = warning.text, "API server returned a warning");
        }
    }
}

/// A handler that ignores every warning.
#[derive(Debug, Clone, Copy, Default)]
#[doc(alias = "NoWarnings")]
pub struct IgnoreWarnings;

impl WarningHandler for IgnoreWarnings {
    fn handle(&self, _warning: &Warning) {}
}

/// A handler that collects warnings, for tests and for programs that print them at the end. At most 1024
/// warnings are kept; the oldest are dropped.
#[derive(Debug, Default)]
pub struct CollectWarnings {
    kept: Mutex<VecDeque<Warning>>,
}

impl CollectWarnings {
    const KEPT: usize = 1024;

    /// Returns the warnings since the last call.
    pub fn take(&self) -> Vec<Warning> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *kept).into()
    }
}

impl WarningHandler for CollectWarnings {
    fn handle(&self, warning: &Warning) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == Self::KEPT {
            kept.pop_front();
        }
        kept.push_back(warning.clone());
    }
}

impl<H: WarningHandler + ?Sized> WarningHandler for std::sync::Arc<H> {
    fn handle(&self, warning: &Warning) {
        (**self).handle(warning);
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses the warnings of a response: those with code 299, the only one that Kubernetes uses.
pub(crate) fn warnings(headers: &HeaderMap) -> Vec<Warning> {
    let mut found = Vec::new();
    for value in headers.get_all(WARNING) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let mut rest = text.as_ref();
        // The rest of a malformed value is ignored.
        while let Some((code, warning, after)) = parse_one(rest) {
            if code == "299" {
                found.push(warning);
            }
            if found.len() == WARNINGS {
                return found;
            }
            rest = after;
        }
    }
    found
}

/// Parses `code agent "text" ["date"]`, and returns the text after the following comma.
fn parse_one(value: &str) -> Option<(&str, Warning, &str)> {
    let (code, rest) = value.trim_start().split_once(' ')?;
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (agent, rest) = rest.trim_start().split_once(' ')?;
    let (text, rest) = quoted(rest.trim_start())?;
    let rest = rest.trim_start();
    let rest = quoted(rest).map_or(rest, |(_date, after)| after.trim_start());
    let rest = match rest.strip_prefix(',') {
        Some(rest) => rest,
        None if rest.is_empty() => rest,
        None => return None,
    };
    Some((code, Warning { agent: agent.to_owned(), text }, rest))
}

/// Parses and unescapes a quoted string, and returns the text after it.
fn quoted(value: &str) -> Option<(String, &str)> {
    let body = value.strip_prefix('"')?;
    let mut text = String::new();
    let mut kept = 0;
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        let character = match character {
            '"' => return Some((text, &body[at + 1..])),
            '\\' => characters.next()?.1,
            other => other,
        };
        if kept < TEXT_CHARACTERS {
            kept += 1;
            // A log entry must stay on one line, whatever the server sends.
            text.push(if character.is_control() { ' ' } else { character });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WARNING, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        warnings(&headers).into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn warning_headers_are_parsed_as_the_api_server_writes_them() {
        let cases: [(&[&str], &[&str]); 9] = [
            (&[r#"299 - "v1beta1 is deprecated""#], &["v1beta1 is deprecated"]),
            (&[r#"299 - "a \"quoted\" \\ word""#], &[r#"a "quoted" \ word"#]),
            (&[r#"299 - "one", 299 agent "two""#], &["one", "two"]),
            (&[r#"299 - "one""#, r#"299 - "two, and more""#], &["one", "two, and more"]),
            (&[r#"299 - "dated" "Tue, 15 Nov 1994 08:12:31 GMT""#], &["dated"]),
            (&[r#"199 - "not ours", 299 - "ours""#], &["ours"]),
            (&["299 - \"tab\there\""], &["tab here"]),
            (&[r#"299 - "naïve""#], &["naïve"]),
            (&[r#"299 - "open"#, "garbage", "", "299 -", r#"299 - "a" b"#], &[]),
        ];
        for (values, expected) in cases {
            assert_eq!(texts(values), expected, "{values:?}");
        }
    }

    #[test]
    fn endless_warnings_are_cut() {
        let one = format!("299 - \"{}\"", "x".repeat(10_000));
        assert_eq!(texts(&[&one])[0].len(), TEXT_CHARACTERS);
        let many = [r#"299 - "x""#; 1000].join(",");
        assert_eq!(texts(&[&many]).len(), WARNINGS);
    }

    #[test]
    fn each_text_is_logged_once_until_the_oldest_is_forgotten() {
        let log = LogWarnings::default();
        assert!(log.is_new("first"));
        assert!(!log.is_new("first"));
        for number in 0..LogWarnings::MEMORY {
            assert!(log.is_new(&number.to_string()));
        }
        assert!(log.is_new("first"));
        assert_eq!(log.seen.lock().unwrap().len(), LogWarnings::MEMORY);
    }

    proptest! {
        #[test]
        fn any_text_survives_quoting(text in "[^\\p{Cc}]{0,200}") {
            let quoted = text.replace('\\', r"\\").replace('"', r#"\""#);
            prop_assert_eq!(texts(&[&format!("299 - \"{quoted}\"")]), vec![text]);
        }

        #[test]
        fn no_header_value_panics_the_parser(value in "[ -~]{0,200}") {
            texts(&[&value]);
        }
    }
}
