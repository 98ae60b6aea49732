//! Streaming extraction of list items, without buffering the whole body.

use bytes::{Buf, Bytes};
use kube_core::response::Status;
use serde::Deserialize;

use super::{
    DecodeError, json,
    scan::{Text, Value, is_whitespace},
    spill::Spill,
    walk::is_spelling_of,
};
use crate::limits::Limits;

/// A splitter of a list body into its items, fed chunk by chunk.
///
/// Each element of the top-level `items` array is returned as the exact bytes that the server sent: as a
/// slice of the chunk if it lies within one, otherwise assembled in a buffer that holds only that item.
/// Everything else is collected for [`ListSplitter::finish`]. The order of members, whitespace, escapes in
/// keys and nested fields of the same names do not matter.
///
/// Items are delimited by their brackets and quotes. They are validated only when they are decoded.
///
/// A member of the envelope that occurs twice is an error, as in kube's `ObjectList`. (A `serde_json::Value`
/// would keep the last; items that were already returned cannot be withdrawn.) `"items": null` is an empty
/// list. A document without `items` is an error and not an empty list, which would empty a whole cache.
///
/// ```
/// use bytes::Bytes;
/// use watchkeeper_client::{decode::ListSplitter, limits::Limits};
///
/// let mut list = ListSplitter::new(&Limits::default());
/// for mut chunk in [r#"{"metadata":{"resourceVersion":"7"},"items":[{"a":1},{"b"#, r#"":[2]}]}"#].map(Bytes::from) {
///     while let Some(item) = list.next_item(&mut chunk)? {
///         assert!(item == r#"{"a":1}"# || item == r#"{"b":[2]}"#);
///     }
/// }
/// assert_eq!(list.finish()?.resource_version.as_deref(), Some("7"));
/// # Ok::<_, watchkeeper_client::decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct ListSplitter {
    state: State,
    /// The current or last key, without quotes, as long as it can match a known one.
    key: Vec<u8>,
    member: Member,
    /// A JSON object assembled from the members of the envelope.
    envelope: Vec<u8>,
    /// The members that have occurred: bit `i` for `KEPT[i]`.
    seen: u16,
    /// The part of the current item that earlier chunks contained.
    item: Spill,
    has_items: bool,
    items: u64,
    /// The number of bytes of the body consumed so far.
    offset: u64,
    object_bytes: usize,
    max_depth: usize,
}

/// The envelope of a list: everything except its items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListEnvelope {
    /// The kind of the list, such as `PodList`.
    pub kind: Option<String>,
    /// The group and version of the list.
    pub api_version: Option<String>,
    /// The resourceVersion of the list.
    pub resource_version: Option<String>,
    /// The token that requests the next page. Never empty.
    pub continue_token: Option<String>,
    /// The number of items after this page, if the server reports it.
    pub remaining_item_count: Option<i64>,
    /// The number of items returned.
    pub items: u64,
}

/// The position in the document. Whitespace is skipped in every state except the `In` ones.
#[derive(Debug)]
enum State {
    /// Before the document.
    Start,
    /// Before a key, or before the end of an object without members.
    Key {
        first: bool,
    },
    InKey(Text),
    Colon,
    /// Before the value of a member.
    Value,
    InValue(Value),
    /// After a member.
    AfterValue,
    /// Before an item, or before the end of an empty array.
    Item {
        first: bool,
    },
    InItem(Value),
    /// After an item.
    AfterItem,
    /// After the document.
    End,
}

/// The treatment of the current member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Items,
    Kept(&'static str),
    Skipped,
}

/// The members of a list that are kept, and those of a `Status`, which may be sent instead.
const KEPT: [&str; 8] = ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"];

/// The maximum length of a relevant key: every character of `apiVersion` escaped.
const KEY_BYTES: usize = 60;

impl ListSplitter {
    /// Creates a splitter for the body of one page.
    pub fn new(limits: &Limits) -> Self {
        Self {
            state: State::Start,
            key: Vec::new(),
            member: Member::Skipped,
            envelope: vec![b'{'],
            seen: 0,
            item: Spill::new(limits.object_bytes),
            has_items: false,
            items: 0,
            offset: 0,
            object_bytes: limits.object_bytes,
            max_depth: limits.json_depth,
        }
    }

    /// Returns the next item, taken from the front of `chunk`. Returns `None` when `chunk` is used up and the
    /// next chunk is needed.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the body is not a list or exceeds a limit. The splitter cannot be used
    /// afterwards.
    pub fn next_item(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        while !chunk.is_empty() {
            match &mut self.state {
                State::InItem(value) => {
                    let end = value.advance(chunk, self.max_depth).map_err(|deep| self.too_deep(deep.0))?;
                    let piece = end.unwrap_or(chunk.len());
                    if !self.item.fits(piece) {
                        return Err(self.too_large("a list item"));
                    }
                    // Reached only for an item that began in an earlier chunk: see `begin_item`.
                    self.item.push(&chunk[..piece]);
                    self.pass(chunk, piece);
                    if end.is_some() {
                        return Ok(Some(self.end_item()));
                    }
                }
                State::Item { first } => {
                    let first = *first;
                    if let Some(item) = self.begin_item(chunk, first)? {
                        return Ok(Some(item));
                    }
                }
                State::InKey(text) => {
                    let end = text.advance(chunk);
                    let piece = end.unwrap_or(chunk.len());
                    // A longer key is not relevant; the extra byte makes that detectable.
                    let room = (KEY_BYTES + 2).saturating_sub(self.key.len());
                    self.key.extend_from_slice(&chunk[..piece.min(room)]);
                    self.pass(chunk, piece);
                    if end.is_some() {
                        self.member_of_key()?;
                        self.state = State::Colon;
                    }
                }
                State::InValue(value) => {
                    let end = value.advance(chunk, self.max_depth).map_err(|deep| self.too_deep(deep.0))?;
                    let piece = end.unwrap_or(chunk.len());
                    self.keep(&chunk[..piece])?;
                    self.pass(chunk, piece);
                    if end.is_some() {
                        self.end_value()?;
                    }
                }
                _ => self.punctuation(chunk)?,
            }
        }
        Ok(None)
    }

    /// Returns the envelope of the list, after the end of the body.
    ///
    /// # Errors
    /// Returns [`DecodeError::Truncated`] if the document is incomplete; [`DecodeError::Status`],
    /// [`DecodeError::Table`] or [`DecodeError::NotAList`] if it is not a list; or an error about one of its
    /// members.
    pub fn finish(mut self) -> Result<ListEnvelope, DecodeError> {
        if !matches!(self.state, State::End) {
            return Err(DecodeError::Truncated { inside: self.inside(), offset: self.offset });
        }
        self.envelope.push(b'}');
        let wire: WireEnvelope = json::parse(&self.envelope)?;
        if wire.kind.as_deref() == Some("Status") {
            let status = Box::new(json::parse::<Status>(&self.envelope)?);
            return Err(DecodeError::Status { instead_of: "a list", status });
        }
        if wire.kind.as_deref() == Some("Table") {
            return Err(DecodeError::Table { instead_of: "a list" });
        }
        if !self.has_items {
            return Err(DecodeError::NotAList);
        }
        let metadata = wire.metadata.unwrap_or_default();
        let not_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(ListEnvelope {
            kind: not_empty(wire.kind),
            api_version: not_empty(wire.api_version),
            resource_version: not_empty(metadata.resource_version),
            continue_token: not_empty(metadata.continue_token),
            remaining_item_count: metadata.remaining_item_count,
            items: self.items,
        })
    }

    /// Processes one token between keys, values and items, and the whitespace before it.
    fn punctuation(&mut self, chunk: &mut Bytes) -> Result<(), DecodeError> {
        let Some(byte) = self.blanks(chunk) else {
            return Ok(());
        };
        let next = match (&self.state, byte) {
            (State::Start, b'{') => State::Key { first: true },
            (State::Key { .. }, b'"') => {
                self.key.clear();
                State::InKey(Text::default())
            }
            (State::Key { first: true } | State::AfterValue, b'}') => State::End,
            (State::Colon, b':') => State::Value,
            (State::Value, _) => return self.begin_value(chunk, byte),
            (State::AfterValue, b',') => State::Key { first: false },
            (State::AfterItem, b',') => State::Item { first: false },
            (State::AfterItem, b']') => State::AfterValue,
            (state, _) => {
                let expected = match state {
                    State::Start => "`{`",
                    State::Key { .. } => "a key",
                    State::Colon => "`:`",
                    State::AfterValue => "`,` or `}`",
                    State::AfterItem => "`,` or `]`",
                    _ => "the end of the list",
                };
                return Err(self.expected(expected));
            }
        };
        self.state = next;
        self.pass(chunk, 1);
        Ok(())
    }

    /// Decides how to treat the member of the key just read.
    fn member_of_key(&mut self) -> Result<(), DecodeError> {
        // The closing quote is absent if the key was too long to be kept.
        let raw = self.key.strip_suffix(b"\"").unwrap_or(&self.key);
        self.member = if is_spelling_of(raw, "items") {
            if self.has_items {
                return Err(DecodeError::Duplicate { field: "items", offset: self.offset });
            }
            Member::Items
        } else if let Some(index) = KEPT.into_iter().position(|name| is_spelling_of(raw, name)) {
            if self.seen & 1 << index != 0 {
                return Err(DecodeError::Duplicate { field: KEPT[index], offset: self.offset });
            }
            self.seen |= 1 << index;
            self.keep_key(KEPT[index]);
            Member::Kept(KEPT[index])
        } else {
            Member::Skipped
        };
        Ok(())
    }

    fn keep_key(&mut self, name: &str) {
        if self.envelope.len() > 1 {
            self.envelope.push(b',');
        }
        self.envelope.push(b'"');
        self.envelope.extend_from_slice(name.as_bytes());
        self.envelope.extend_from_slice(b"\":");
    }

    fn begin_value(&mut self, chunk: &mut Bytes, byte: u8) -> Result<(), DecodeError> {
        if self.member == Member::Items {
            self.has_items = true;
            match byte {
                b'[' => {
                    self.state = State::Item { first: true };
                    self.pass(chunk, 1);
                    return Ok(());
                }
                // `null`, or a word that the parse of the envelope will reject.
                b'n' => {
                    self.keep_key("items");
                    self.member = Member::Kept("items");
                }
                _ => return Err(self.items_must_be_array()),
            }
        }
        let Some(value) = Value::begin(byte) else {
            return Err(self.expected("a value"));
        };
        // Serde also accepts an array for a struct, by position.
        if self.member == Member::Kept("metadata") && !matches!(byte, b'{' | b'n') {
            return Err(DecodeError::WrongType {
                field: "metadata",
                expected: "an object",
                offset: self.offset,
            });
        }
        self.keep(&[byte])?;
        self.state = State::InValue(value);
        self.pass(chunk, 1);
        Ok(())
    }

    /// Appends a piece of the member's value to the envelope, if the member is kept.
    fn keep(&mut self, piece: &[u8]) -> Result<(), DecodeError> {
        if let Member::Kept(_) = self.member {
            if self.envelope.len().saturating_add(piece.len()) > self.object_bytes {
                return Err(self.too_large("the metadata of a list"));
            }
            self.envelope.extend_from_slice(piece);
        }
        Ok(())
    }

    fn end_value(&mut self) -> Result<(), DecodeError> {
        // If the kind precedes the rows, a table is rejected before they are read.
        if self.member == Member::Kept("kind") && self.envelope.ends_with(b":\"Table\"") {
            return Err(DecodeError::Table { instead_of: "a list" });
        }
        self.state = State::AfterValue;
        Ok(())
    }

    /// Reads an item from its first byte. An item that ends in this chunk is not copied.
    fn begin_item(&mut self, chunk: &mut Bytes, first: bool) -> Result<Option<Bytes>, DecodeError> {
        let Some(byte) = self.blanks(chunk) else {
            return Ok(None);
        };
        if byte == b']' && first {
            self.state = State::AfterValue;
            self.pass(chunk, 1);
            return Ok(None);
        }
        let Some(mut value) = Value::begin(byte) else {
            return Err(self.expected("an item"));
        };
        let end = value.advance(&chunk[1..], self.max_depth).map_err(|deep| self.too_deep(1 + deep.0))?;
        let piece = end.map_or(chunk.len(), |end| end + 1);
        if piece > self.object_bytes {
            return Err(self.too_large("a list item"));
        }
        if end.is_some() {
            let item = chunk.slice(..piece);
            self.pass(chunk, piece);
            self.items += 1;
            self.state = State::AfterItem;
            return Ok(Some(item));
        }
        self.item.push(chunk);
        self.pass(chunk, piece);
        self.state = State::InItem(value);
        Ok(None)
    }

    fn end_item(&mut self) -> Bytes {
        self.items += 1;
        self.state = State::AfterItem;
        self.item.take()
    }

    /// Skips whitespace; the byte after it stays in `chunk`.
    fn blanks(&mut self, chunk: &mut Bytes) -> Option<u8> {
        let blanks = chunk.iter().position(|&byte| !is_whitespace(byte)).unwrap_or(chunk.len());
        self.pass(chunk, blanks);
        chunk.first().copied()
    }

    fn pass(&mut self, chunk: &mut Bytes, bytes: usize) {
        chunk.advance(bytes);
        self.offset += bytes as u64;
    }

    fn inside(&self) -> &'static str {
        match self.state {
            State::InItem(_) => "a list item",
            State::Item { .. } | State::AfterItem => "the items of a list",
            _ => "a list",
        }
    }

    fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError::Syntax { expected, offset: self.offset }
    }

    fn items_must_be_array(&self) -> DecodeError {
        DecodeError::WrongType { field: "items", expected: "an array", offset: self.offset }
    }

    fn too_deep(&self, at: usize) -> DecodeError {
        DecodeError::TooDeep { limit: self.max_depth, offset: self.offset + at as u64 }
    }

    fn too_large(&self, part: &'static str) -> DecodeError {
        DecodeError::TooLarge {
            part,
            limit: "object_bytes",
            bytes: self.object_bytes as u64,
            offset: self.offset,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEnvelope {
    kind: Option<String>,
    api_version: Option<String>,
    metadata: Option<WireListMeta>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct WireListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}
