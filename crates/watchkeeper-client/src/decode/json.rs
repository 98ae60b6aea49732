//! The default decoder, based on `serde_json`.

use std::cell::Cell;

use serde::de::DeserializeOwned;
use serde_json::{Deserializer, de::StrRead, error::Category};

use super::{
    Decode, DecodeError, Header,
    cut::{managed_fields, without},
    frugal::Frugal,
    header::header,
    retain::decode_retaining,
    walk::Walk,
};
use crate::limits::Limits;

/// The recursion limit of `serde_json`. With a higher limit, the depth is checked only for documents that the
/// parser rejects.
const PARSER_DEPTH: usize = 127;

/// The maximum capacity of a scratch buffer that is kept for the next object.
const KEPT_SCRATCH_BYTES: usize = 64 << 10;

thread_local! {
    /// A buffer in which objects are assembled without their managedFields, reused between objects.
    /// Allocating and freeing a buffer of that size for each object would fragment the heap.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A decoder of JSON into any `Deserialize` type, based on `serde_json`.
///
/// Suitable types are those of `k8s_openapi`, kube's `DynamicObject`, types made by
/// `#[derive(CustomResource)]`, [`ObjectMetadata`](super::ObjectMetadata), and [narrow types](crate::narrow). A
/// narrow type is the cheapest way to a small cache, because fields that it does not declare are skipped.
///
/// `metadata.managedFields` is removed before parsing, unless [`Json::keep_managed_fields`] is set. Writing
/// such an object back is safe: the server keeps managedFields if an update does not mention them.
///
/// A list of one element, as most in Kubernetes objects are, has capacity for one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "TransformStripManagedFields")]
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
    /// Creates a decoder that removes `metadata.managedFields`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes `metadata.managedFields` as any other field. It causes more than half of the allocations of a
    /// typical pod.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Sets the maximum nesting depth. Defaults to [`Limits::json_depth`].
    ///
    /// Parsing uses stack in proportion to the depth, so a limit of thousands needs a larger stack. In fields
    /// that the type skips, which use no stack, the depth is checked only if the limit is below 127; lists and
    /// watches check the depth of all fields before they call the decoder.
    #[must_use]
    pub fn max_depth(mut self, limit: usize) -> Self {
        self.max_depth = limit;
        self
    }
}

impl Json {
    /// Decodes one object, and appends compact JSON of everything that `K` reads to `retained`.
    ///
    /// The appended JSON decodes to the same `K`. It contains no member that `K` ignores, so for a type with few fields
    /// it is a small part of the object. After an error, `retained` is as before.
    ///
    /// A type that reads the document through a buffer, such as an untagged enum, retains the whole buffer.
    ///
    /// ```
    /// use watchkeeper_client::decode::{Decode, Json};
    ///
    /// #[derive(Debug, PartialEq, serde::Deserialize)]
    /// struct Ports {
    ///     ports: Vec<u16>,
    /// }
    ///
    /// let mut retained = Vec::new();
    /// let ports: Ports = Json::new().decode_retaining(br#"{"name": "web", "ports": [80, 443]}"#, &mut retained)?;
    /// assert_eq!(retained, br#"{"ports":[80,443]}"#);
    /// assert_eq!(ports, Json::new().decode(&retained)?);
    /// # Ok::<_, watchkeeper_client::decode::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not a `K`.
    pub fn decode_retaining<K: DeserializeOwned>(
        &self,
        object: &[u8],
        retained: &mut Vec<u8>,
    ) -> Result<K, DecodeError> {
        let start = retained.len();
        let decoded = self.decode_with(object, |deserializer| decode_retaining(deserializer, retained));
        if decoded.is_err() {
            // The parser rejects bytes after the object only when the object is written.
            retained.truncate(start);
        }
        decoded
    }

    /// Returns the number of bytes that [`Json::decode_retaining`] retains of one object.
    ///
    /// Compared with the length of the object, it shows whether `K` is a narrow type.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not a `K`.
    pub fn retained_bytes<K: DeserializeOwned>(&self, object: &[u8]) -> Result<usize, DecodeError> {
        let mut retained = Vec::new();
        self.decode_retaining::<K>(object, &mut retained)?;
        Ok(retained.len())
    }

    /// Decodes one object by this function of the parser.
    fn decode_with<K>(&self, object: &[u8], mut read: impl Read<K>) -> Result<K, DecodeError> {
        if self.max_depth < PARSER_DEPTH {
            Walk::new(object).skip(self.max_depth)?;
        }
        if self.keep_managed_fields {
            return self.parse(object, &mut read);
        }
        let gone = managed_fields(object);
        if gone.is_empty() {
            return self.parse(object, &mut read);
        }
        let mut scratch = SCRATCH.take();
        let parsed = self.parse(without(object, &gone, &mut scratch), &mut read);
        if scratch.capacity() <= KEPT_SCRATCH_BYTES {
            SCRATCH.set(scratch);
        }
        parsed.map_err(|error| {
            // The offset refers to the received bytes, not to the shortened ones.
            gone.iter().fold(error, |error, range| error.moved_behind(range.start as u64, range.len() as u64))
        })
    }

    /// Parses a document up to the maximum depth. Few documents exceed the parser's own limit, so the depth
    /// is checked only if the parser fails.
    fn parse<K>(&self, bytes: &[u8], read: &mut impl Read<K>) -> Result<K, DecodeError> {
        let result = parse_to(bytes, Depth::Unknown, read);
        let is_deeper = || Walk::new(bytes).skip(PARSER_DEPTH).is_err();
        if self.max_depth <= PARSER_DEPTH
            || !matches!(result, Err(DecodeError::Syntax { .. }))
            || !is_deeper()
        {
            return result;
        }
        Walk::new(bytes).skip(self.max_depth)?;
        parse_to(bytes, Depth::Checked, read)
    }
}

impl<K: DeserializeOwned> Decode<K> for Json {
    fn decode(&self, object: &[u8]) -> Result<K, DecodeError> {
        self.decode_with(object, |deserializer| K::deserialize(deserializer))
    }

    fn can_retain(&self) -> bool {
        true
    }

    fn header(&self, object: &[u8]) -> Result<Header, DecodeError> {
        header(object)
    }

    fn retain(&self, object: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let gone = if self.keep_managed_fields { Vec::new() } else { managed_fields(object) };
        let mut kept = 0;
        for range in gone {
            out.extend_from_slice(&object[kept..range.start]);
            kept = range.end;
        }
        out.extend_from_slice(&object[kept..]);
        Ok(())
    }

    fn decode_retaining(&self, object: &[u8], json: &mut Vec<u8>) -> Result<K, DecodeError> {
        Self::decode_retaining(self, object, json)
    }
}

/// The parser of a document.
type Parser<'a, 'text> = Frugal<&'a mut Deserializer<StrRead<'text>>>;

/// A function that reads a value from a parser.
trait Read<K>: FnMut(Parser<'_, '_>) -> serde_json::Result<K> {}

impl<K, F: FnMut(Parser<'_, '_>) -> serde_json::Result<K>> Read<K> for F {}

/// Parses a whole document up to the parser's own depth limit.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    parse_to(bytes, Depth::Unknown, &mut |deserializer: Parser<'_, '_>| T::deserialize(deserializer))
}

/// The knowledge about the depth of a document before parsing.
#[derive(Clone, Copy)]
enum Depth {
    /// The depth is unknown, so the parser enforces its own limit.
    Unknown,
    /// The depth is known to be within the limit.
    Checked,
}

/// Validating UTF-8 once is much cheaper than validating each string.
fn parse_to<T>(bytes: &[u8], depth: Depth, read: &mut impl Read<T>) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DecodeError::Utf8 { offset: error.valid_up_to() as u64 })?;
    let mut deserializer = Deserializer::from_str(text);
    if let Depth::Checked = depth {
        deserializer.disable_recursion_limit();
    }
    let value = read(Frugal(&mut deserializer));
    let whole = value.and_then(|value| deserializer.end().map(|()| value));
    whole.map_err(|error| refused(&error, bytes))
}

/// Converts the parser's error, without quoting the document.
fn refused(error: &serde_json::Error, bytes: &[u8]) -> DecodeError {
    let offset = offset(bytes, error.line(), error.column());
    match error.classify() {
        Category::Eof => DecodeError::Truncated { inside: "an object", offset: bytes.len() as u64 },
        Category::Data => DecodeError::Mismatch { reason: reason(&error.to_string()), offset },
        Category::Syntax | Category::Io => DecodeError::Syntax { expected: "well-formed JSON", offset },
    }
}

/// Converts a line and a column, both counted from one, to an offset.
fn offset(bytes: &[u8], line: usize, column: usize) -> u64 {
    let line_start = match line.checked_sub(2) {
        Some(newlines) => memchr::memchr_iter(b'\n', bytes).nth(newlines).map_or(0, |at| at + 1),
        None => 0,
    };
    (line_start + column.saturating_sub(1)).min(bytes.len()) as u64
}

/// Returns the reason of a type mismatch. Serde's standard messages are kept without the value that they
/// quote; other messages may quote anything and are replaced.
pub(super) fn reason(message: &str) -> String {
    // The position, which is reported separately.
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    // Field names come from the type, not from the document.
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        return message.to_owned();
    }
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    let problem = ["invalid type: ", "invalid value: ", "invalid length "].into_iter().find_map(|kind| {
        let found = message.strip_prefix(kind)?.split([' ', ',']).next()?;
        // Only the word for the type of the value; numbers and other values come from the document.
        let found =
            if found.bytes().all(|byte| byte.is_ascii_lowercase()) { found } else { "something else" };
        Some(format!("{}{found}", kind.trim_end().trim_end_matches(':').to_owned() + ": "))
    });
    let problem =
        problem.or_else(|| message.starts_with("unknown variant ").then(|| "unknown variant".to_owned()));
    match (problem, expected) {
        (Some(problem), Some(expected)) => format!("{problem}, expected {expected}"),
        _ => "the type rejected the value".to_owned(),
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
    fn a_matching_document_is_decoded() {
        let fits = br#"{"number":1,"choice":"Right","pair":[1,2]}"#;
        let expected = Strict { number: 1, choice: Some(Choice::Right), pair: Some((1, 2)) };
        assert_eq!(Decode::<Strict>::decode(&Json::new(), fits).unwrap(), expected);
    }

    #[test]
    fn mismatches_name_the_expected_type_and_quote_nothing() {
        for (document, reason, offset) in [
            (r#"{"number":"hunter2, expected nothing"}"#, "invalid type: string, expected u8", 36),
            (r#"{"number":777}"#, "invalid value: integer, expected u8", 12),
            (r#"{"number":1.5}"#, "invalid type: floating, expected u8", 12),
            (r#"{"number":null}"#, "invalid type: null, expected u8", 13),
            (r#"{"choice":"hunter2","number":1}"#, "unknown variant, expected `Left` or `Right`", 18),
            (r#"{"number":1,"hunter2":1}"#, "the type rejected the value", 20),
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
