//! The wire format: tags, varints and length-delimited parts.

use super::fault::{Cause, Fault};

/// A value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// Returns whether the value is the zero value of its type.
    pub(super) fn is_zero(self) -> bool {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Fixed32 => false,
        }
    }

    #[inline]
    pub(super) fn bytes(self) -> Result<&'a [u8], Fault> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(wrong_type()) }
    }

    #[inline]
    pub(super) fn varint(self) -> Result<u64, Fault> {
        if let Self::Varint(value) = self { Ok(value) } else { Err(wrong_type()) }
    }

    #[inline]
    pub(super) fn text(self) -> Result<&'a str, Fault> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|error| Fault::at(Cause::Utf8, &bytes[error.valid_up_to()..]))
    }

    /// Returns a signed number, which is sent as two's complement.
    #[inline]
    #[expect(clippy::cast_possible_wrap, reason = "negative numbers are sent as two's complement")]
    pub(super) fn signed(self) -> Result<i64, Fault> {
        self.varint().map(|value| value as i64)
    }

    /// Returns a signed 32-bit number. Higher bits are ignored, as in Go.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "negative numbers are sent with 64 bits")]
    pub(super) fn signed32(self) -> Result<i32, Fault> {
        self.varint().map(|value| value as i32)
    }
}

#[cold]
fn wrong_type() -> Fault {
    Fault::new(Cause::Wire("a field has another wire type than its type requires"))
}

/// The fields of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Returns the bytes that have not been read.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the number of the next field without reading the field.
    #[inline]
    pub(super) fn peek(&self) -> Option<u32> {
        let mut rest = self.rest;
        let tag = varint(&mut rest).ok()?;
        u32::try_from(tag >> 3).ok()
    }

    /// Returns the next field: its number and its value. `None` at the end of the message.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.rest;
        let tag = varint(&mut self.rest)?;
        let Some(number) = u32::try_from(tag >> 3).ok().filter(|number| *number != 0) else {
            return Err(Fault::at(Cause::Wire("a field has an invalid number"), start));
        };
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => {
                let (bits, rest) = self.rest.split_first_chunk::<8>().ok_or_else(|| end(self.rest))?;
                self.rest = rest;
                Wire::Fixed64(u64::from_le_bytes(*bits))
            }
            2 => {
                let length = varint(&mut self.rest)?;
                let (bytes, rest) = usize::try_from(length)
                    .ok()
                    .and_then(|length| self.rest.split_at_checked(length))
                    .ok_or_else(|| end(self.rest))?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            5 => {
                self.rest = self.rest.get(4..).ok_or_else(|| end(self.rest))?;
                Wire::Fixed32
            }
            _ => return Err(Fault::at(Cause::Wire("a field has an unknown wire type"), start)),
        };
        Ok(Some((number, value)))
    }
}

#[cold]
fn end(rest: &[u8]) -> Fault {
    Fault::at(Cause::End, &rest[rest.len()..])
}

/// Reads a varint from the front of `rest`.
#[inline]
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    match rest {
        [byte, behind @ ..] if *byte < 0x80 => {
            let value = u64::from(*byte);
            *rest = behind;
            Ok(value)
        }
        _ => long_varint(rest),
    }
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0_u64;
    for (index, byte) in rest.iter().enumerate() {
        if index == 9 && *byte > 1 || index > 9 {
            return Err(Fault::at(Cause::Wire("a number has more than 64 bits"), rest));
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            *rest = &rest[index + 1..];
            return Ok(value);
        }
    }
    Err(end(rest))
}

/// Writes a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Writes the tag and the length of a string, bytes or message field.
pub(super) fn put_length(out: &mut Vec<u8>, number: u32, length: usize) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, length as u64);
}

/// Writes a string, bytes or message field.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_length(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Writes a field with any value.
pub(super) fn put(out: &mut Vec<u8>, number: u32, value: Wire<'_>) {
    match value {
        Wire::Varint(value) => {
            put_varint(out, u64::from(number) << 3);
            put_varint(out, value);
        }
        Wire::Fixed64(bits) => {
            put_varint(out, u64::from(number) << 3 | 1);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Wire::Bytes(bytes) => put_bytes(out, number, bytes),
        // No type of the table has such fields.
        Wire::Fixed32 => {}
    }
}

/// Returns the number of bytes of a varint.
pub(super) fn varint_bytes(value: usize) -> usize {
    (value.max(1).ilog2() / 7 + 1) as usize
}
