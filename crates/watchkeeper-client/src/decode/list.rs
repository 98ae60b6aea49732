//! The items of a list, one by one, out of a body that is never held whole.

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

/// Splits the body of a list into its items, fed chunk by chunk.
///
/// Each element of the top-level `items` array is handed out as the exact bytes the server sent for it: as a slice
/// of the chunk when it lies in one, else put together in a buffer that holds that one item.
/// Everything beside the items is collected for [`ListSplitter::finish`]. The order of the members, pretty
/// printing, escapes in keys and nested fields of the same names do not matter.
///
/// What it does not do: items are found by their brackets and quotes, and validated by whoever decodes them.
///
/// A member of the envelope that occurs twice is an error, as it is for kube's `ObjectList`. (A
/// `serde_json::Value` would keep the last; items already handed out cannot be taken back.) `"items": null` is an
/// empty list. A document without `items` is not a list, and never an empty one: taken for empty, it would
/// delete a whole cache.
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
    /// The key being read or last read, without quotes, as far as it can still be one we know.
    key: Vec<u8>,
    member: Member,
    /// A JSON object of the members we read, put together while the items go by.
    envelope: Vec<u8>,
    /// The members that occurred, bit `i` for `KEPT[i]`.
    seen: u16,
    /// The item being read, as far as earlier chunks had it.
    item: Spill,
    has_items: bool,
    items: u64,
    /// Bytes of the body behind us.
    offset: u64,
    object_bytes: usize,
    max_depth: usize,
}

/// What a list says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListEnvelope {
    /// The kind of the list, such as `PodList`.
    pub kind: Option<String>,
    /// The group and version of the list.
    pub api_version: Option<String>,
    /// The resourceVersion the list is true for.
    pub resource_version: Option<String>,
    /// Where to go on, when the server has more. Never empty.
    pub continue_token: Option<String>,
    /// How many items are left behind this page, where the server says.
    pub remaining_item_count: Option<i64>,
    /// How many items were handed out.
    pub items: u64,
}

/// Where in the document we are. Blanks are passed over in every state but the `In` ones.
#[derive(Debug)]
enum State {
    /// Before the document.
    Start,
    /// Before a key, or before the end when there are no members.
    Key {
        first: bool,
    },
    InKey(Text),
    Colon,
    /// Before the value of a member.
    Value,
    InValue(Value),
    /// Behind a member.
    AfterValue,
    /// Before an item, or before the end of the array when there are none.
    Item {
        first: bool,
    },
    InItem(Value),
    /// Behind an item.
    AfterItem,
    /// Behind the document.
    End,
}

/// What to do with the member being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Items,
    Kept(&'static str),
    Skipped,
}

/// The members of a list we read, and those of a `Status`, which may come instead of one.
const KEPT: [&str; 8] = ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"];

/// The longest a key of interest can be: each character of `apiVersion` as an escape.
const KEY_BYTES: usize = 60;

impl ListSplitter {
    /// A splitter for the body of one page.
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

    /// The next item, taken off the front of `chunk`. None means that `chunk` is used up and the next is needed.
    ///
    /// # Errors
    /// When the body is not a list or exceeds a limit. The splitter is of no further use then.
    pub fn next_item(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        while !chunk.is_empty() {
            match &mut self.state {
                State::InItem(value) => {
                    let end = value.advance(chunk, self.max_depth).map_err(|deep| self.too_deep(deep.0))?;
                    let piece = end.unwrap_or(chunk.len());
                    if !self.item.fits(piece) {
                        return Err(self.too_large("a list item"));
                    }
                    // Only reached for an item begun in an earlier chunk: see `begin_item`.
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
                    // A longer key is none of ours; the one byte more makes that known.
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

    /// What the list said beside its items, once the body has ended.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when the document has not; [`DecodeError::Status`], [`DecodeError::Table`] or
    /// [`DecodeError::NotAList`] when it was something else; or what is wrong with its members.
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

    /// One token between keys, values and items, and the blanks before it.
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

    /// Decides what the member behind the key just read is to us.
    fn member_of_key(&mut self) -> Result<(), DecodeError> {
        // The closing quote, unless the key was too long to be kept whole.
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
                // `null`, or a word that the parse of the envelope will refuse.
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
        // serde reads an array as a struct too, by position.
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

    /// Puts a piece of the member's value aside, if anybody will read it.
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
        // Known before the rows, a table is refused before they are read.
        if self.member == Member::Kept("kind") && self.envelope.ends_with(b":\"Table\"") {
            return Err(DecodeError::Table { instead_of: "a list" });
        }
        self.state = State::AfterValue;
        Ok(())
    }

    /// Reads an item from its first byte. One that ends in this chunk is never copied.
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

    /// Passes over blanks; the byte behind them stays in `chunk`.
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
