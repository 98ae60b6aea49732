//! The wire format: tags, varints and length-delimited parts.

/// The reason why bytes are not valid protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum WireError {
    /// The bytes end within a value.
    #[error("unexpected EOF")]
    End,
    /// A varint is too long.
    #[error("proto: integer overflow")]
    Overflow,
    /// A tag has the number 0 or an unknown wire type.
    #[error("proto: illegal tag {0}")]
    Tag(u64),
    /// A field has another wire type than its type requires.
    #[error("proto: wrong wireType for field {0}")]
    Kind(u32),
    /// A string is not UTF-8.
    #[error("proto: invalid UTF-8")]
    Utf8,
    /// Messages are nested too deeply.
    #[error("proto: nested too deeply")]
    Depth,
    /// The values of the message take too much memory.
    #[error("proto: the values of the message take too much memory")]
    TooLarge,
    /// A raw member is not JSON.
    #[error("proto: a raw member is not JSON: {0}")]
    Raw(String),
    /// A time is out of the range of the calendar.
    #[error("proto: a time is out of range")]
    Time,
}

/// A value on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self, number: u32) -> Result<&'a [u8], WireError> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(WireError::Kind(number)) }
    }

    pub(super) fn varint(self, number: u32) -> Result<u64, WireError> {
        if let Self::Varint(value) = self { Ok(value) } else { Err(WireError::Kind(number)) }
    }

    pub(super) fn text(self, number: u32) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes(number)?).map_err(|_| WireError::Utf8)
    }
}

/// An iterator over the fields of a message.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<(u32, Wire<'a>), WireError> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0).ok_or(WireError::Tag(tag))?;
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => {
                let (head, rest) = self.rest.split_first_chunk::<8>().ok_or(WireError::End)?;
                self.rest = rest;
                Wire::Fixed64(u64::from_le_bytes(*head))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).map_err(|_| WireError::Overflow)?;
                let (part, rest) = self.rest.split_at_checked(length).ok_or(WireError::End)?;
                self.rest = rest;
                Wire::Bytes(part)
            }
            5 => {
                let (_, rest) = self.rest.split_first_chunk::<4>().ok_or(WireError::End)?;
                self.rest = rest;
                Wire::Fixed32
            }
            _ => return Err(WireError::Tag(tag)),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

/// Reads a varint from the front of `rest`.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (&byte, tail) = rest.split_first().ok_or(WireError::End)?;
        *rest = tail;
        if shift == 63 && byte > 1 {
            return Err(WireError::Overflow);
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(WireError::Overflow)
}

/// Writes a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Writes a varint field.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Writes a fixed 64-bit field.
pub(crate) fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend(value.to_le_bytes());
}

/// Writes a string, bytes or message field.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}
