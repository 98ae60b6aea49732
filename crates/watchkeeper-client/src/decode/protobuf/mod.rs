//! The protobuf encoding of built-in kinds, decoded straight into `Deserialize` types.
//!
//! An object arrives as a message, in an envelope except in lists. The table of built-in types says which JSON member each
//! field is, so the decoder presents a message to a type as a parser of JSON would present the object's JSON:
//!
//! | protobuf | JSON |
//! |---|---|
//! | field numbers | names of members |
//! | an empty field that Go writes nevertheless | omitted, zero or null, as the table says |
//! | messages of which JSON inlines the members (volume sources, probe handlers) | members of the outer object |
//! | bytes, times, quantities, `IntOrString`, raw extensions, JSON schemas | base64, RFC 3339, text, text or number, JSON |
//! | type of the envelope | `apiVersion` and `kind`, which list items omit |
//!
//! | module | contents |
//! |---|---|
//! | `wire`, `envelope`, `time` | the format |
//! | `types` | the table, prepared for lookups by field number |
//! | `object`, `value` | messages and values as serde deserializers |
//! | `regroup` | messages whose repeated fields are not contiguous |
//! | `metadata` | identity, header and removal of managedFields, without decoding |
//! | `list`, `frames` | lists and watches, chunk by chunk |

mod envelope;
mod fault;
mod frames;
mod list;
mod metadata;
mod object;
mod regroup;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod value;
mod wire;

use std::sync::Arc;

use kube_core::Status;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use frames::{MessageFrames, split_message};
pub(crate) use list::MessageList;

use self::{
    envelope::{Envelope, MAGIC},
    object::{MANAGED_FIELDS, Members},
    types::{MessageId, types},
    value::Place,
};
use super::{Bookmark, Decode, DecodeError, Encoding, Header, Identity, Json, retain::decode_retaining};
use crate::limits::Limits;

/// A decoder of the protobuf encoding of a built-in kind into any `Deserialize` type.
///
/// The result equals that of decoding the object's JSON with [`Json`](super::Json): for the types of `k8s_openapi`, and for
/// narrow types of your own, whose undeclared fields are skipped without work.
///
/// The decoder knows the members of Kubernetes 1.37. Members that a newer server adds are skipped, even if the type declares
/// them; request JSON for such a type.
///
/// `metadata.managedFields` is skipped, unless [`Protobuf::keep_managed_fields`] is set.
///
/// ```
/// use watchkeeper_client::decode::Protobuf;
///
/// assert!(Protobuf::for_kind("apps", "v1", "Deployment").is_some());
/// assert!(Protobuf::for_kind("example.com", "v1", "Custom").is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protobuf {
    message: MessageId,
    keep_managed_fields: bool,
    max_depth: usize,
}

impl Protobuf {
    /// Creates a decoder for a kind. Returns `None` if the table of built-in types has no such kind.
    pub fn for_kind(group: &str, version: &str, kind: &str) -> Option<Self> {
        types().find(group, version, kind).map(Self::of)
    }

    /// Creates a decoder for objects of any kind that are reduced to their metadata (`PartialObjectMetadata`).
    pub fn metadata_only() -> Self {
        Self::of(types().metadata_only())
    }

    fn of(message: MessageId) -> Self {
        Self { message, keep_managed_fields: false, max_depth: Limits::DEFAULT.json_depth }
    }

    /// Decodes `metadata.managedFields` as any other field.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Sets the maximum nesting depth, counted as in the object's JSON. Defaults to [`Limits::json_depth`].
    #[must_use]
    pub fn max_depth(mut self, limit: usize) -> Self {
        self.max_depth = limit;
        self
    }

    fn read<K: DeserializeOwned>(&self, object: &[u8]) -> Result<K, DecodeError> {
        self.read_with(object, |message| K::deserialize(message))
    }

    /// Decodes an object by this function of its message. The function is called again for a scattered object.
    fn read_with<K>(
        &self,
        object: &[u8],
        mut read: impl FnMut(Members<'_>) -> Result<K, fault::Fault>,
    ) -> Result<K, DecodeError> {
        let skipped = (!self.keep_managed_fields).then_some(MANAGED_FIELDS);
        let fault = |fault: fault::Fault| fault.of_object(object, self.max_depth);
        let envelope = Envelope::open(object).map_err(fault)?;
        let mut decode = |envelope: &Envelope<'_>| {
            Members::of_object(types(), self.message, envelope, self.max_depth, skipped).and_then(&mut read)
        };
        decode(&envelope).or_else(|error| {
            // A type may reject a part of a scattered object before the other parts are found.
            if !error.may_be_scattered() {
                return Err(fault(error));
            }
            let place = Place { types: types(), depth: self.max_depth };
            let raw = regroup::regrouped(types().get(self.message), envelope.raw, place).map_err(fault)?;
            decode(&Envelope { raw: &raw, ..envelope }).map_err(|again| {
                // The offset refers to the received bytes.
                if error.is_scattered() { again.of_object(&raw, self.max_depth) } else { fault(error) }
            })
        })
    }

    /// Decodes the message of a `Status`.
    fn status(message: &[u8]) -> Result<Box<Status>, DecodeError> {
        let id = types().named("io.k8s.apimachinery.pkg.apis.meta.v1.Status");
        let id = id.ok_or_else(|| DecodeError::WrongKind { expected: "Status".to_owned() })?;
        Self::of(id).read(message).map(Box::new)
    }

    /// Returns the content of an object as JSON.
    pub(super) fn content(&self, object: &[u8]) -> Option<Map<String, Value>> {
        self.keep_managed_fields().read(object).ok()
    }
}

impl<K: DeserializeOwned> Decode<K> for Protobuf {
    fn decode(&self, object: &[u8]) -> Result<K, DecodeError> {
        self.read(object)
    }

    fn identify(&self, object: &[u8], kind: &str) -> Result<Identity, DecodeError> {
        metadata::identity(object, kind)
    }

    fn can_retain(&self) -> bool {
        true
    }

    fn header(&self, object: &[u8]) -> Result<Header, DecodeError> {
        metadata::header(object).map_err(|fault| fault.of_object(object, self.max_depth))
    }

    fn retain(&self, object: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if self.keep_managed_fields {
            out.extend_from_slice(object);
            return Ok(());
        }
        let before = out.len();
        metadata::without_managed_fields(object, out).map_err(|fault| {
            out.truncate(before);
            fault.of_object(object, self.max_depth)
        })
    }

    fn decode_retaining(&self, object: &[u8], json: &mut Vec<u8>) -> Result<K, DecodeError> {
        self.read_with(object, |message| decode_retaining(message, json))
    }

    /// The part that a type reads is written as JSON.
    fn retained_decoder(&self) -> Option<Arc<dyn Decode<K>>> {
        Some(Arc::new(Json::new().max_depth(self.max_depth)))
    }

    fn encoding(&self) -> Encoding {
        Encoding::Protobuf(*self)
    }
}

/// Returns whether `body` starts as an object in protobuf does.
pub(crate) fn is_message(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Decodes a `Status` in its envelope. Every field of a `Status` is optional, so its kind must be present.
///
/// # Errors
/// Returns a [`DecodeError`] if the object is not a `Status`.
pub(crate) fn status_of_message(object: &[u8]) -> Result<Box<Status>, DecodeError> {
    let envelope = Envelope::open(object).map_err(|fault| fault.of_object(object, 0))?;
    if envelope.kind != "Status" {
        return Err(DecodeError::WrongKind { expected: "Status".to_owned() });
    }
    Protobuf::status(envelope.raw)
}

/// Decodes the object of a BOOKMARK event.
///
/// # Errors
/// Returns a [`DecodeError`] if the object has no resourceVersion.
pub(crate) fn bookmark_of_message(object: &[u8]) -> Result<Bookmark, DecodeError> {
    metadata::bookmark(object)
}
