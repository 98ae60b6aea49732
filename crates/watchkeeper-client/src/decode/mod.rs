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
}
