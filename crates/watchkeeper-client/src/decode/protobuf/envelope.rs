//! The envelope of an object: magic bytes, then a message with the kind and the object's own message.

use super::{
    fault::Fault,
    wire::{Fields, put_bytes, put_length, varint_bytes},
};

/// The magic bytes before an envelope. No message starts with them, because they are not a valid field.
pub(super) const MAGIC: &[u8; 4] = b"k8s\0";

/// An object in its envelope. Items of lists have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Envelope<'a> {
    /// The API version, such as `apps/v1`; empty without an envelope.
    pub(super) api_version: &'a str,
    /// The kind; empty without an envelope.
    pub(super) kind: &'a str,
    /// The message of the object.
    pub(super) raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads an envelope, if `object` has one.
    pub(super) fn open(object: &'a [u8]) -> Result<Self, Fault> {
        let Some(body) = object.strip_prefix(MAGIC) else {
            return Ok(Self { api_version: "", kind: "", raw: object });
        };
        let mut envelope = Self { api_version: "", kind: "", raw: &[] };
        let mut fields = Fields::new(body);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => (envelope.api_version, envelope.kind) = type_of(value.bytes()?)?,
                2 => envelope.raw = value.bytes()?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Writes the start of an envelope for a message of `length` bytes. Nothing, if the object has no envelope.
    pub(super) fn put_start(&self, out: &mut Vec<u8>, length: usize) {
        if self.kind.is_empty() && self.api_version.is_empty() {
            return;
        }
        let part = |text: &str| 1 + varint_bytes(text.len()) + text.len();
        out.extend_from_slice(MAGIC);
        put_length(out, 1, part(self.api_version) + part(self.kind));
        put_bytes(out, 1, self.api_version.as_bytes());
        put_bytes(out, 2, self.kind.as_bytes());
        put_length(out, 2, length);
    }
}

/// Reads a `TypeMeta`: the API version and the kind.
pub(super) fn type_of(message: &[u8]) -> Result<(&str, &str), Fault> {
    let (mut api_version, mut kind) = ("", "");
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => api_version = value.text()?,
            2 => kind = value.text()?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}
