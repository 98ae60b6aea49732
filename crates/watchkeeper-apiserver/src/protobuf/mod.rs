//! Protobuf encoding of objects of built-in kinds, driven by their schemas.
//!
//! An object is sent in an envelope: four magic bytes, then a message with the kind and the object's own message. Objects
//! are converted to and from the JSON form that all other modules use, so one schema serves both.

mod read;
mod wire;
mod write;

pub(crate) use read::read;
pub(crate) use wire::{WireError, put_bytes, put_fixed64, put_number};
pub(crate) use write::{frame, list, write};

use wire::Fields;

/// The magic bytes at the start of every object in protobuf.
pub(crate) const MAGIC: [u8; 4] = *b"k8s\0";

/// An object in its envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    /// The API version as sent, such as `apps/v1`; may be empty.
    pub api_version: &'a str,
    /// The kind as sent; may be empty.
    pub kind: &'a str,
    /// The message of the object.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Parses an envelope. `body` starts after [`MAGIC`].
    ///
    /// # Errors
    /// Returns an error if `body` is not an envelope.
    pub(crate) fn open(body: &'a [u8]) -> Result<Self, WireError> {
        let mut envelope = Self { api_version: "", kind: "", raw: &[] };
        for member in Fields::new(body) {
            match member? {
                (1, value) => {
                    for part in Fields::new(value.bytes(1)?) {
                        match part? {
                            (1, value) => envelope.api_version = value.text(1)?,
                            (2, value) => envelope.kind = value.text(2)?,
                            _ => {}
                        }
                    }
                }
                (2, value) => envelope.raw = value.bytes(2)?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Encodes the envelope, including the magic bytes.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut of = Vec::with_capacity(self.api_version.len() + self.kind.len() + 4);
        put_bytes(&mut of, 1, self.api_version.as_bytes());
        put_bytes(&mut of, 2, self.kind.as_bytes());
        let mut out = Vec::with_capacity(self.raw.len() + of.len() + 20);
        out.extend(MAGIC);
        put_bytes(&mut out, 1, &of);
        put_bytes(&mut out, 2, self.raw);
        // The content encoding and content type, which are always empty.
        put_bytes(&mut out, 3, b"");
        put_bytes(&mut out, 4, b"");
        out
    }
}
