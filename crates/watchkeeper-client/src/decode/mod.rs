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
//! Objects of built-in kinds may arrive as protobuf instead, in the same steps; see [`Protobuf`].
//!
//! The [`Identity`] of an object is read before the object is decoded, at a hundredth of the cost. An object
//! that is already cached therefore need not be decoded, and an object that cannot be decoded can still be
//! named.
//!
//! Decoded objects may be kept for a long time, so they use only the memory they need: `managedFields` is
//! removed, and a list of one element has capacity for one.

use std::sync::Arc;

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
mod protobuf;
mod retain;
mod scan;
mod spill;
#[cfg(test)]
mod tests;
mod walk;

pub use content::{Content, Encoding, is_same_content};
pub use cut::cut_managed_fields;
pub use error::DecodeError;
pub(crate) use event::{Bookmark, RawEvent, WatchEventType, split_event, status_of_event};
pub use frames::FrameSplitter;
pub(crate) use gunzip::Gunzip;
pub use header::{Header, OwnerHeader};
pub use json::Json;
pub use list::{ListEnvelope, ListSplitter};
pub use metadata::ObjectMetadata;
pub(crate) use probe::probe_kind;
pub use probe::{Identity, probe};
pub use protobuf::Protobuf;
pub(crate) use protobuf::{
    MessageFrames, MessageList, bookmark_of_message, is_message, split_message, status_of_message,
};
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

    /// Reads the identity of an object without decoding the object, and checks its kind.
    ///
    /// If `kind` is empty, every kind is accepted except tables. An object without a kind is accepted, because items of
    /// lists may omit it. The default reads JSON.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the object has another kind or no name.
    fn identify(&self, object: &[u8], kind: &str) -> Result<Identity, DecodeError> {
        probe_kind(object, kind)
    }

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

    /// Decodes one object, and appends the part of it that a `K` reads to `retained`. A cache of a type with few fields keeps
    /// that part. The [`retained_decoder`](Self::retained_decoder) decodes it to an equal object.
    ///
    /// Called if [`can_retain`](Self::can_retain). The default appends what [`retain`](Self::retain) does.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not a `K`.
    fn decode_retaining(&self, object: &[u8], retained: &mut Vec<u8>) -> Result<K, DecodeError> {
        self.retain(object, retained)?;
        self.decode(object)
    }

    /// Returns the decoder of the bytes that [`decode_retaining`](Self::decode_retaining) appends, if it is another than this
    /// one. Defaults to `None`.
    fn retained_decoder(&self) -> Option<Arc<dyn Decode<K>>> {
        None
    }

    /// Returns the encoding of the objects, by which two received objects are compared.
    ///
    /// The default is JSON. Bytes that are not JSON are then compared byte by byte.
    fn encoding(&self) -> Encoding {
        Encoding::Json
    }
}
