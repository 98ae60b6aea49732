//! Objects of built-in kinds as protobuf, read and written by their schemas.
//!
//! An object travels in an envelope: four bytes that say what it is, then a message with the kind and the object's own
//! message. In between is the same JSON form everything else uses, so one schema serves both.

mod read;
mod wire;
mod write;

pub(crate) use read::read;
pub(crate) use wire::{WireError, put_bytes, put_fixed64, put_number};
pub(crate) use write::{frame, list, write};

use wire::Members;

/// What every object in protobuf starts with.
pub(crate) const MAGIC: [u8; 4] = *b"k8s\0";

/// An object in its envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    /// The version as it was given, such as `apps/v1`; may be empty.
    pub api_version: &'a str,
    /// The kind as it was given; may be empty.
    pub kind: &'a str,
    /// The message of the object.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens an envelope; `body` starts after [`MAGIC`].
    ///
    /// # Errors
    /// If it is not one.
    pub(crate) fn open(body: &'a [u8]) -> Result<Self, WireError> {
        let mut envelope = Self { api_version: "", kind: "", raw: &[] };
        for member in Members::new(body) {
            match member? {
                (1, value) => {
                    for part in Members::new(value.bytes(1)?) {
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

    /// Writes the envelope, with what every object starts with.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut of = Vec::with_capacity(self.api_version.len() + self.kind.len() + 4);
        put_bytes(&mut of, 1, self.api_version.as_bytes());
        put_bytes(&mut of, 2, self.kind.as_bytes());
        let mut out = Vec::with_capacity(self.raw.len() + of.len() + 20);
        out.extend(MAGIC);
        put_bytes(&mut out, 1, &of);
        put_bytes(&mut out, 2, self.raw);
        // How the object's own message is encoded and of which type it is; both are what they always are.
        put_bytes(&mut out, 3, b"");
        put_bytes(&mut out, 4, b"");
        out
    }
}
