//! A cursor over the members of objects in a complete document, which parses only the requested values.

use std::{borrow::Cow, ops::Range};

use super::{
    DecodeError,
    scan::{Text, Value, is_whitespace},
};

/// A position in a document. Between two calls the position is before a value, or between two members of an
/// object.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the current offset.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Enters the next value if it is an object. Returns false, and stays before the value, otherwise.
    pub(super) fn enter(&mut self) -> Result<bool, DecodeError> {
        let is_object = self.peek("a value")? == b'{';
        self.at += usize::from(is_object);
        Ok(is_object)
    }

    /// Returns the next key of the current object without its quotes, or `None` at its end. The position is
    /// then before the key's value, which must be read, skipped or entered. `first` is whether this is the
    /// first key.
    pub(super) fn key(&mut self, first: bool) -> Result<Option<Key<'a>>, DecodeError> {
        match self.peek("an object")? {
            b'}' => {
                self.at += 1;
                return Ok(None);
            }
            b',' if !first => self.at += 1,
            _ if first => {}
            _ => return Err(self.expected("`,` or `}`")),
        }
        if self.peek("an object")? != b'"' {
            return Err(self.expected("a key"));
        }
        let start = self.at;
        self.at += 1;
        let raw = self.text("a key")?;
        if self.peek("an object")? != b':' {
            return Err(self.expected("`:`"));
        }
        self.at += 1;
        self.blanks();
        Ok(Some(Key { raw: &self.bytes[raw], start }))
    }

    /// Enters the next value if it is a list. Returns false, and stays before the value, otherwise.
    pub(super) fn enter_list(&mut self) -> Result<bool, DecodeError> {
        let is_list = self.peek("a value")? == b'[';
        self.at += usize::from(is_list);
        Ok(is_list)
    }

    /// Moves before the next item of the current list, which must be read, skipped or entered. Returns false at the end of the
    /// list. `first` is whether this is the first item.
    pub(super) fn item(&mut self, first: bool) -> Result<bool, DecodeError> {
        match self.peek("a list")? {
            b']' => {
                self.at += 1;
                return Ok(false);
            }
            b',' if !first => self.at += 1,
            _ if first => {}
            _ => return Err(self.expected("`,` or `]`")),
        }
        Ok(true)
    }

    /// Skips the next value and returns its range.
    pub(super) fn skip(&mut self, max_depth: usize) -> Result<Range<usize>, DecodeError> {
        let first = self.peek("a value")?;
        let start = self.at;
        let Some(mut value) = Value::begin(first) else {
            return Err(self.expected("a value"));
        };
        let rest = &self.bytes[start + 1..];
        let end = value
            .advance(rest, max_depth)
            .map_err(|deep| DecodeError::TooDeep { limit: max_depth, offset: (start + 1 + deep.0) as u64 })?;
        match (end, value) {
            (Some(end), _) => self.at = start + 1 + end,
            // A bare word at the end of the document has no delimiter.
            (None, Value::Word) => self.at = self.bytes.len(),
            (None, _) => return Err(self.truncated("a value")),
        }
        Ok(start..self.at)
    }

    /// Reads the next value if it is a string; skips any other value and returns `None`.
    pub(super) fn string(&mut self) -> Result<Option<Cow<'a, str>>, DecodeError> {
        if self.peek("a value")? != b'"' {
            self.skip(usize::MAX)?;
            return Ok(None);
        }
        self.at += 1;
        let raw = self.text("a string")?;
        let offset = raw.start;
        unescaped(&self.bytes[raw]).map(Some).map_err(|error| error.moved(offset as u64))
    }

    /// Returns the first byte of the next token.
    pub(super) fn peek(&mut self, inside: &'static str) -> Result<u8, DecodeError> {
        self.blanks();
        self.bytes.get(self.at).copied().ok_or_else(|| self.truncated(inside))
    }

    /// Returns whether only whitespace is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.blanks();
        self.at == self.bytes.len()
    }

    pub(super) fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError::Syntax { expected, offset: self.at as u64 }
    }

    fn truncated(&self, inside: &'static str) -> DecodeError {
        DecodeError::Truncated { inside, offset: self.bytes.len() as u64 }
    }

    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(|&byte| is_whitespace(byte)) {
            self.at += 1;
        }
    }

    /// Returns the content of the string whose opening quote was just passed.
    fn text(&mut self, inside: &'static str) -> Result<Range<usize>, DecodeError> {
        let start = self.at;
        let end = Text::default().advance(&self.bytes[start..]).ok_or_else(|| self.truncated(inside))?;
        self.at = start + end;
        Ok(start..self.at - 1)
    }
}

/// Returns whether the arrays and objects of a document nest deeper than `limit`. Invalid JSON is left to the parser.
pub(crate) fn is_deeper_than(json: &[u8], limit: usize) -> bool {
    let mut walk = Walk::new(json);
    // The bracket that opens the document is not counted by the search for its end.
    let is_container = matches!(walk.peek("a value"), Ok(b'{' | b'['));
    (limit == 0 && is_container) || matches!(walk.skip(limit), Err(DecodeError::TooDeep { .. }))
}

/// A key of an object, as spelled in the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    raw: &'a [u8],
    /// The offset of the opening quote.
    pub(super) start: usize,
}

impl<'a> Key<'a> {
    /// Returns the key without escapes.
    pub(super) fn text(&self) -> Result<Cow<'a, str>, DecodeError> {
        unescaped(self.raw).map_err(|error| error.moved(self.start as u64 + 1))
    }

    /// Returns whether this is the key `name`, in any spelling.
    pub(super) fn is(&self, name: &str) -> bool {
        is_spelling_of(self.raw, name)
    }
}

/// Returns whether the content of a JSON string spells `name`, with or without escapes.
pub(super) fn is_spelling_of(raw: &[u8], name: &str) -> bool {
    raw == name.as_bytes()
        || (memchr::memchr(b'\\', raw).is_some() && unescaped(raw).is_ok_and(|text| text == name))
}

/// Unescapes a JSON string, given without its quotes.
fn unescaped(raw: &[u8]) -> Result<Cow<'_, str>, DecodeError> {
    let text =
        std::str::from_utf8(raw).map_err(|error| DecodeError::Utf8 { offset: error.valid_up_to() as u64 })?;
    if memchr::memchr(b'\\', raw).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    serde_json::from_str::<String>(&format!("\"{text}\""))
        .map(Cow::Owned)
        .map_err(|_| DecodeError::Syntax { expected: "a valid escape", offset: 0 })
}
