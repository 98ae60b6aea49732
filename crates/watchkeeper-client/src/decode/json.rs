//! The default decoder.

use std::cell::Cell;

use serde::de::DeserializeOwned;
use serde_json::{Deserializer, error::Category};

use super::{
    Decode, DecodeError,
    cut::{managed_fields, without},
    frugal::Frugal,
    walk::Walk,
};
use crate::limits::Limits;

/// How deep `serde_json` goes by itself. A limit of no less needs a look at the depth only where it stopped.
const PARSER_DEPTH: usize = 127;

/// The largest scratch that is kept for the next object.
const KEPT_SCRATCH_BYTES: usize = 64 << 10;

thread_local! {
    /// Where an object is put together without its managedFields, for one after the other: a block of that size taken and
    /// given back in between leaves holes among the small ones that stay.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Decodes JSON with `serde_json` into any type that deserialises: `k8s_openapi`'s, kube's `DynamicObject`, those
/// made by `#[derive(CustomResource)]`, [`ObjectMetadata`](super::ObjectMetadata), or a narrow type of your own,
/// which is the cheapest way to a small cache: fields it does not name are passed over.
///
/// `metadata.managedFields` is left out before the parse unless [`Json::keep_managed_fields`] says otherwise.
/// Writing such an object back is safe: the server keeps managedFields when an update does not mention them.
///
/// A list of one element, as most in Kubernetes objects are, takes the room of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json {
    keep_managed_fields: bool,
    max_depth: usize,
}

impl Default for Json {
    fn default() -> Self {
        Self { keep_managed_fields: false, max_depth: Limits::default().json_depth }
    }
}

impl Json {
    /// A decoder that leaves out `metadata.managedFields`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes `metadata.managedFields` like any other field. It is more than half of the allocations of a typical pod.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Refuses objects nested deeper than `limit`, by default [`Limits::json_depth`]. Parsing takes stack in proportion
    /// to depth: thousands need a larger stack as well. In fields the type passes over, which take none, a depth beyond
    /// 127 is only looked for below that limit; lists and watches look everywhere before they come here.
    #[must_use]
    pub fn max_depth(mut self, limit: usize) -> Self {
        self.max_depth = limit;
        self
    }
}

impl Json {
    /// Parses one document as deep as is allowed. Few are deeper than the parser goes by itself, so it goes first, and
    /// only where it stopped is the depth looked at.
    fn parse<K: DeserializeOwned>(&self, bytes: &[u8]) -> Result<K, DecodeError> {
        let result = parse(bytes);
        let is_deeper = || Walk::new(bytes).skip(PARSER_DEPTH).is_err();
        if self.max_depth <= PARSER_DEPTH
            || !matches!(result, Err(DecodeError::Syntax { .. }))
            || !is_deeper()
        {
            return result;
        }
        Walk::new(bytes).skip(self.max_depth)?;
        parse_to(bytes, Depth::Checked)
    }
}

impl<K: DeserializeOwned> Decode<K> for Json {
    fn decode(&self, object: &[u8]) -> Result<K, DecodeError> {
        if self.max_depth < PARSER_DEPTH {
            Walk::new(object).skip(self.max_depth)?;
        }
        if self.keep_managed_fields {
            return self.parse(object);
        }
        let gone = managed_fields(object);
        if gone.is_empty() {
            return self.parse(object);
        }
        let mut scratch = SCRATCH.take();
        let parsed = self.parse(without(object, &gone, &mut scratch));
        if scratch.capacity() <= KEPT_SCRATCH_BYTES {
            SCRATCH.set(scratch);
        }
        parsed.map_err(|error| {
            // An offset in the bytes that came, not in what was left of them.
            gone.iter().fold(error, |error, range| error.moved_behind(range.start as u64, range.len() as u64))
        })
    }
}

/// Parses one whole document, as deep as the parser goes by itself.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    parse_to(bytes, Depth::Unknown)
}

/// What is known of a document's depth before it is parsed.
#[derive(Clone, Copy)]
enum Depth {
    /// Nothing: the parser guards its stack.
    Unknown,
    /// That it is within the limit.
    Checked,
}

/// Validating UTF-8 once for all is much cheaper than string by string.
fn parse_to<T: DeserializeOwned>(bytes: &[u8], depth: Depth) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DecodeError::Utf8 { offset: error.valid_up_to() as u64 })?;
    let mut deserializer = Deserializer::from_str(text);
    if let Depth::Checked = depth {
        deserializer.disable_recursion_limit();
    }
    let value = T::deserialize(Frugal(&mut deserializer));
    let whole = value.and_then(|value| deserializer.end().map(|()| value));
    whole.map_err(|error| refused(&error, bytes))
}

/// The parser's error, without what it quotes of the document.
fn refused(error: &serde_json::Error, bytes: &[u8]) -> DecodeError {
    let offset = offset(bytes, error.line(), error.column());
    match error.classify() {
        Category::Eof => DecodeError::Truncated { inside: "an object", offset: bytes.len() as u64 },
        Category::Data => DecodeError::Mismatch { reason: reason(&error.to_string()), offset },
        Category::Syntax | Category::Io => DecodeError::Syntax { expected: "well-formed JSON", offset },
    }
}

/// Lines and columns, both counted from one, as an offset.
fn offset(bytes: &[u8], line: usize, column: usize) -> u64 {
    let line_start = match line.checked_sub(2) {
        Some(newlines) => memchr::memchr_iter(b'\n', bytes).nth(newlines).map_or(0, |at| at + 1),
        None => 0,
    };
    (line_start + column.saturating_sub(1)).min(bytes.len()) as u64
}

/// What a type objected to. Messages of serde's own kinds are kept without the value they quote; of any other,
/// which may quote anything, nothing is kept.
fn reason(message: &str) -> String {
    // Position, which is given apart.
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    // Names of fields come from the type, not from the document.
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        return message.to_owned();
    }
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    let problem = ["invalid type: ", "invalid value: ", "invalid length "].into_iter().find_map(|kind| {
        let found = message.strip_prefix(kind)?.split([' ', ',']).next()?;
        // The word for what was found; numbers and the like are the document's.
        let found =
            if found.bytes().all(|byte| byte.is_ascii_lowercase()) { found } else { "something else" };
        Some(format!("{}{found}", kind.trim_end().trim_end_matches(':').to_owned() + ": "))
    });
    let problem =
        problem.or_else(|| message.starts_with("unknown variant ").then(|| "unknown variant".to_owned()));
    match (problem, expected) {
        (Some(problem), Some(expected)) => format!("{problem}, expected {expected}"),
        _ => "the type refused the value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        number: u8,
        choice: Option<Choice>,
        pair: Option<(u8, u8)>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Choice {
        Left,
        Right,
    }

    #[test]
    fn the_scratch_is_kept_for_the_next_object_unless_it_grew_large() {
        for (before, after) in [
            (KEPT_SCRATCH_BYTES, KEPT_SCRATCH_BYTES),
            (KEPT_SCRATCH_BYTES + 1, 0),
            (4 * KEPT_SCRATCH_BYTES, 0),
        ] {
            SCRATCH.set(Vec::with_capacity(before));
            let object = br#"{"metadata":{"managedFields":[]},"number":1}"#;
            assert!(Decode::<serde_json::Value>::decode(&Json::new(), object).is_ok());
            assert_eq!(SCRATCH.take().capacity(), after, "a scratch of {before} bytes");
        }
        let large = format!(
            r#"{{"metadata":{{"managedFields":[]}},"text":"{}"}}"#,
            "x".repeat(2 * KEPT_SCRATCH_BYTES)
        );
        assert!(Decode::<serde_json::Value>::decode(&Json::new(), large.as_bytes()).is_ok());
        assert_eq!(SCRATCH.take().capacity(), 0);
    }

    #[test]
    fn what_fits_is_not_refused() {
        let fits = br#"{"number":1,"choice":"Right","pair":[1,2]}"#;
        let expected = Strict { number: 1, choice: Some(Choice::Right), pair: Some((1, 2)) };
        assert_eq!(Decode::<Strict>::decode(&Json::new(), fits).unwrap(), expected);
    }

    #[test]
    fn refusals_say_what_was_expected_and_quote_nothing() {
        for (document, reason, offset) in [
            (r#"{"number":"hunter2, expected nothing"}"#, "invalid type: string, expected u8", 36),
            (r#"{"number":777}"#, "invalid value: integer, expected u8", 12),
            (r#"{"number":1.5}"#, "invalid type: floating, expected u8", 12),
            (r#"{"number":null}"#, "invalid type: null, expected u8", 13),
            (r#"{"choice":"hunter2","number":1}"#, "unknown variant, expected `Left` or `Right`", 18),
            (r#"{"number":1,"hunter2":1}"#, "the type refused the value", 20),
            (r#"{"pair":[1],"number":1}"#, "invalid length: something else, expected a tuple of size 2", 10),
            (r"{}", "missing field `number`", 1),
            ("{\n \"number\":\"hunter2\"}", "invalid type: string, expected u8", 20),
        ] {
            match Decode::<Strict>::decode(&Json::new(), document.as_bytes()) {
                Err(DecodeError::Mismatch { reason: found, offset: at }) => {
                    assert_eq!((found.as_str(), at), (reason, offset), "{document}");
                }
                other => panic!("{document}: {other:?}"),
            }
        }
    }
}
