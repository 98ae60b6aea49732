//! Decoding of bytes to objects: splitting, probing, cutting, parsing.
//!
//! The functions are pure and the splitters are state machines over bytes, without IO, waits or tasks. A body is
//! processed chunk by chunk and never held whole:
//!
//! ```text
//! list   chunk ─▶ [Gunzip] ─▶ ListSplitter ─▶ item ─┐
//!                                                   ├─▶ probe ─▶ Identity ─▶ Decode (cut, parse) ─▶ K
//! watch  chunk ─▶ FrameSplitter ─▶ split_event ─────┘
//! ```
//!
//! The [`Identity`] of an object is read before the object is decoded, at a hundredth of the cost. An object
//! that is already cached therefore need not be decoded, and an object that cannot be decoded can still be
//! named.
//!
//! Decoded objects may be kept for a long time, so they use only the memory they need: `managedFields` is
//! removed, and a list of one element has capacity for one.

mod content;
mod cut;
mod error;
pub(crate) mod event;
mod frames;
mod frugal;
mod gunzip;
mod header;
mod json;
mod list;
mod metadata;
mod probe;
mod retain;
mod scan;
mod spill;
#[cfg(test)]
mod tests;
mod walk;

pub use content::is_same_content;
pub use cut::cut_managed_fields;
pub use error::DecodeError;
pub(crate) use event::{RawEvent, WatchEventType, split_event, status_of_event};
pub use frames::FrameSplitter;
pub(crate) use gunzip::Gunzip;
pub use header::{Header, OwnerHeader};
pub use json::Json;
pub use list::{ListEnvelope, ListSplitter};
pub use metadata::ObjectMetadata;
pub(crate) use probe::probe_kind;
pub use probe::{Identity, probe};
pub(crate) use walk::is_deeper_than;

/// A decoder of the bytes of one object into a `K`.
///
/// Implement this trait to use another format or parser. [`Json`] is the default.
#[doc(alias = "ContentConfig")]
pub trait Decode<K>: Send + Sync {
    /// Decodes one object.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not a `K`. The error contains no bytes of the object.
    fn decode(&self, object: &[u8]) -> Result<K, DecodeError>;

    /// Returns whether a cache may keep encoded objects instead of decoded ones. Defaults to false.
    ///
    /// A decoder that returns true implements [`header`](Self::header), and decodes the same bytes to equal objects.
    fn can_retain(&self) -> bool {
        false
    }

    /// Reads the metadata of an object that a cache keeps encoded. Called if [`can_retain`](Self::can_retain).
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are malformed. The default returns an empty header.
    fn header(&self, object: &[u8]) -> Result<Header, DecodeError> {
        let _ = object;
        Ok(Header::default())
    }

    /// Appends the bytes that a cache keeps of an object to `out`. This decoder decodes them to an equal object. The default
    /// appends all bytes.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are malformed.
    fn retain(&self, object: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        out.extend_from_slice(object);
        Ok(())
    }

    /// Decodes one object, and appends JSON of the part that a `K` reads to `json`, from which [`Json`] decodes an equal
    /// object. A cache of a type with few fields keeps that JSON instead of the bytes. The default appends nothing: the
    /// part is unknown.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not a `K`.
    fn decode_retaining(&self, object: &[u8], json: &mut Vec<u8>) -> Result<K, DecodeError> {
        let _ = json;
        self.decode(object)
    }
}
