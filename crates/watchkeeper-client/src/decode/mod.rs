//! Bytes to objects: splitting, probing, cutting, parsing.
//!
//! Pure functions and state machines over bytes: nothing here does IO, waits or spawns. A body goes through them
//! chunk by chunk and is never held whole:
//!
//! ```text
//! list   chunk ─▶ [Gunzip] ─▶ ListSplitter ─▶ item ─┐
//!                                                   ├─▶ probe ─▶ Identity ─▶ Decode (cut, parse) ─▶ K
//! watch  chunk ─▶ FrameSplitter ─▶ split_event ─────┘
//! ```
//!
//! An object's [`Identity`] is read before the object is decoded. It costs a hundredth of it, and it is what makes two
//! things possible: an object a cache already has need not be decoded at all, and an object that cannot be decoded
//! can still be named.
//!
//! What is decoded may be kept for long, so it takes the memory it needs: `managedFields` is left out, and a list of
//! one element has the room of one.

mod content;
mod cut;
mod error;
mod event;
mod frames;
mod frugal;
mod gunzip;
mod json;
mod list;
mod metadata;
mod probe;
mod scan;
mod spill;
mod walk;

pub use content::is_same_content;
pub use cut::cut_managed_fields;
pub use error::DecodeError;
pub(crate) use event::status_of_event;
pub use event::{Bookmark, EventType, RawEvent, split_event};
pub use frames::FrameSplitter;
pub use gunzip::Gunzip;
pub use json::Json;
pub use list::{ListEnvelope, ListSplitter};
pub use metadata::ObjectMetadata;
pub(crate) use probe::probe_kind;
pub use probe::{Identity, probe};

/// How the bytes of one object become a `K`.
///
/// The seam at which another format or another parser can be put in. [`Json`] is the default.
pub trait Decode<K>: Send + Sync {
    /// Decodes one object.
    ///
    /// # Errors
    /// When the bytes are not a `K`. The error holds nothing of the bytes.
    fn decode(&self, object: &[u8]) -> Result<K, DecodeError>;
}
