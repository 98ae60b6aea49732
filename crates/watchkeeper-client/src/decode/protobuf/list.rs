//! Streaming extraction of the items of a list, without buffering the whole body.

use bytes::{Buf, Bytes};

use super::{
    super::{DecodeError, ListEnvelope, spill::Spill},
    Protobuf,
    envelope::{MAGIC, type_of},
    fault::Fault,
    wire::Fields,
};
use crate::limits::Limits;

/// A splitter of a list body into its items, fed chunk by chunk.
///
/// Each item is returned as the exact bytes that the server sent: as a slice of the chunk if it lies within one, otherwise
/// assembled in a buffer that holds only that item. An item above [`Limits::object_bytes`] is an error as soon as its length
/// is known.
#[derive(Debug)]
pub(crate) struct MessageList {
    state: State,
    /// The bytes of the list that follow, while the list is being read.
    list: Option<u64>,
    /// Whether the message of the list was found.
    has_list: bool,
    /// The collected value of a field.
    spill: Spill,
    api_version: String,
    kind: String,
    /// The metadata of the list.
    metadata: Bytes,
    /// The `Status` that was sent instead of a list.
    status: Option<Bytes>,
    items: u64,
    offset: u64,
    object_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Within the magic bytes, of which some have been read.
    Magic(usize),
    /// Within the tag of a field.
    Tag(Varint),
    /// Within the number that follows a tag: a value or a length.
    Number(u64, Varint),
    /// Within a value of which some bytes follow.
    Value(Target, u64),
}

/// A number that is being read.
#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    bits: u32,
}

/// The treatment of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Skipped,
    Type,
    Status,
    Metadata,
    Item,
}

impl Target {
    fn part(self) -> &'static str {
        match self {
            Self::Item => "a list item",
            _ => "the metadata of a list",
        }
    }
}

impl MessageList {
    /// Creates a splitter for the body of one page.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            state: State::Magic(0),
            list: None,
            has_list: false,
            spill: Spill::new(limits.object_bytes),
            api_version: String::new(),
            kind: String::new(),
            metadata: Bytes::new(),
            status: None,
            items: 0,
            offset: 0,
            object_bytes: limits.object_bytes,
        }
    }

    /// Returns the next item, taken from the front of `chunk`. `None` when `chunk` is used up.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the body is not a list or exceeds a limit. The splitter cannot be used afterwards.
    pub(crate) fn next_item(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        loop {
            // Values without content are complete even at the end of a chunk.
            if let State::Value(target, left) = self.state {
                if let Some(value) = self.value(chunk, target, left)? {
                    self.state = State::Tag(Varint::default());
                    if target == Target::Item {
                        self.items += 1;
                        return Ok(Some(value));
                    }
                    self.keep(target, &value)?;
                } else if chunk.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            if self.list == Some(0) {
                self.end_list()?;
            }
            if chunk.is_empty() {
                return Ok(None);
            }
            let byte = chunk.get_u8();
            self.offset += 1;
            if let Some(left) = &mut self.list {
                *left -= 1;
            }
            self.state = match self.state {
                State::Magic(index) if MAGIC.get(index) != Some(&byte) => {
                    return Err(self.wrong("the body has no envelope"));
                }
                State::Magic(index) if index + 1 < MAGIC.len() => State::Magic(index + 1),
                State::Magic(_) => State::Tag(Varint::default()),
                State::Tag(mut tag) => match self.push(&mut tag, byte)? {
                    None => State::Tag(tag),
                    Some(tag) => self.after_tag(tag)?,
                },
                State::Number(tag, mut number) => match self.push(&mut number, byte)? {
                    None => State::Number(tag, number),
                    // The value of a field that is not relevant.
                    Some(_) if tag & 7 != 2 => State::Tag(Varint::default()),
                    Some(length) => self.begin(tag >> 3, length)?,
                },
                state @ State::Value(..) => state,
            };
        }
    }

    /// Returns the envelope of the list, after the end of the body.
    ///
    /// # Errors
    /// Returns [`DecodeError::Truncated`] if the body is incomplete; [`DecodeError::Status`] or [`DecodeError::NotAList`] if
    /// it is not a list.
    pub(crate) fn finish(self) -> Result<ListEnvelope, DecodeError> {
        let is_between = matches!(self.state, State::Tag(Varint { bits: 0, .. }));
        if !is_between || self.list.is_some_and(|left| left > 0) {
            let inside = match self.state {
                State::Value(target, _) if self.list.is_some() => target.part(),
                _ => "a list",
            };
            return Err(DecodeError::Truncated { inside, offset: self.offset });
        }
        if let Some(status) = &self.status {
            let status = Protobuf::status(status)?;
            return Err(DecodeError::Status { instead_of: "a list", status });
        }
        if !self.has_list {
            return Err(DecodeError::NotAList);
        }
        let mut envelope = ListEnvelope { items: self.items, ..ListEnvelope::default() };
        read_metadata(&self.metadata, &mut envelope).map_err(|fault| fault.of_object(&self.metadata, 0))?;
        envelope.kind = Some(self.kind).filter(|kind| !kind.is_empty());
        envelope.api_version = Some(self.api_version).filter(|version| !version.is_empty());
        Ok(envelope)
    }

    fn after_tag(&self, tag: u64) -> Result<State, DecodeError> {
        if tag >> 3 == 0 {
            return Err(self.wrong("a field has an invalid number"));
        }
        let is_known = matches!(tag >> 3, 1 | 2);
        match tag & 7 {
            0 | 1 | 5 if is_known => Err(self.wrong("a field has another wire type than its type requires")),
            0 | 2 => Ok(State::Number(tag, Varint::default())),
            1 => self.sized(Target::Skipped, 8),
            5 => self.sized(Target::Skipped, 4),
            _ => Err(self.wrong("a field has an unknown wire type")),
        }
    }

    /// Returns the state before a value of `length` bytes.
    fn sized(&self, target: Target, length: u64) -> Result<State, DecodeError> {
        if self.list.is_some_and(|left| left < length) {
            return Err(self.wrong("a field is longer than its message"));
        }
        if target != Target::Skipped && usize::try_from(length).is_ok_and(|length| length > self.object_bytes)
            || usize::try_from(length).is_err()
        {
            return Err(DecodeError::TooLarge {
                part: target.part(),
                limit: "object_bytes",
                bytes: self.object_bytes as u64,
                offset: self.offset,
            });
        }
        Ok(State::Value(target, length))
    }

    /// Returns the state at the start of a value of `length` bytes.
    fn begin(&mut self, number: u64, length: u64) -> Result<State, DecodeError> {
        if self.list.is_some() {
            let target = match number {
                1 => Target::Metadata,
                2 => Target::Item,
                _ => Target::Skipped,
            };
            return self.sized(target, length);
        }
        match number {
            1 => self.sized(Target::Type, length),
            2 if self.has_list || self.status.is_some() => {
                Err(DecodeError::Duplicate { field: "raw", offset: self.offset })
            }
            2 => match self.kind.as_str() {
                "Status" => self.sized(Target::Status, length),
                "Table" => Err(DecodeError::Table { instead_of: "a list" }),
                kind if kind.ends_with("List") => {
                    self.has_list = true;
                    self.list = Some(length);
                    Ok(State::Tag(Varint::default()))
                }
                "" => Err(DecodeError::Missing { field: "kind" }),
                _ => Err(DecodeError::NotAList),
            },
            _ => self.sized(Target::Skipped, length),
        }
    }

    fn end_list(&mut self) -> Result<(), DecodeError> {
        if !matches!(self.state, State::Tag(Varint { bits: 0, .. })) {
            return Err(self.wrong("a field is longer than its message"));
        }
        self.list = None;
        Ok(())
    }

    /// Reads a value from the front of `chunk`. `None` if more bytes follow.
    fn value(&mut self, chunk: &mut Bytes, target: Target, left: u64) -> Result<Option<Bytes>, DecodeError> {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        let bytes = chunk.split_to(piece);
        self.offset += piece as u64;
        if let Some(list) = &mut self.list {
            *list -= piece as u64;
        }
        let left = left - piece as u64;
        if target == Target::Skipped {
            self.state = State::Value(target, left);
            return Ok((left == 0).then_some(Bytes::new()));
        }
        if left == 0 && self.spill.is_empty() {
            return Ok(Some(bytes));
        }
        if !self.spill.fits(piece) {
            return Err(self.wrong("a field is longer than its message"));
        }
        self.spill.push(&bytes);
        self.state = State::Value(target, left);
        Ok((left == 0).then(|| self.spill.take()))
    }

    fn keep(&mut self, target: Target, value: &Bytes) -> Result<(), DecodeError> {
        match target {
            Target::Type => {
                let (api_version, kind) = type_of(value).map_err(|fault: Fault| fault.of_object(value, 0))?;
                api_version.clone_into(&mut self.api_version);
                kind.clone_into(&mut self.kind);
            }
            // Copied, so that the chunk is not kept.
            Target::Metadata => self.metadata = Bytes::copy_from_slice(value),
            Target::Status => self.status = Some(Bytes::copy_from_slice(value)),
            Target::Skipped | Target::Item => {}
        }
        Ok(())
    }

    fn push(&self, number: &mut Varint, byte: u8) -> Result<Option<u64>, DecodeError> {
        if number.bits > 63 || number.bits == 63 && byte > 1 {
            return Err(self.wrong("a number has more than 64 bits"));
        }
        number.value |= u64::from(byte & 0x7f) << number.bits;
        number.bits += 7;
        Ok((byte < 0x80).then_some(number.value))
    }

    fn wrong(&self, problem: &'static str) -> DecodeError {
        DecodeError::Protobuf { problem, offset: self.offset }
    }
}

/// Reads a `ListMeta`.
fn read_metadata(message: &[u8], envelope: &mut ListEnvelope) -> Result<(), Fault> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            2 => envelope.resource_version = text(value.text()?),
            3 => envelope.continue_token = text(value.text()?),
            4 => envelope.remaining_item_count = Some(value.signed()?),
            _ => {}
        }
    }
    Ok(())
}
