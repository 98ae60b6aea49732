//! A received object before decoding.

use std::{fmt, sync::Arc};

use bytes::Bytes;

use crate::decode::{Content, Decode, DecodeError, Identity};

/// A received object that is identified but not yet decoded.
///
/// Its [`Identity`] is known, so a cache that already contains this version can drop the item without decoding it.
/// Until it is decoded or dropped, the item holds the received bytes, which may be a slice of a larger chunk,
/// so do not keep items for long.
#[must_use = "dropping an undecoded item skips the object"]
pub struct ReceivedItem<K> {
    identity: Identity,
    body: Body<K>,
}

enum Body<K> {
    Bytes(Bytes, Arc<dyn Decode<K>>),
    Decoded(Arc<K>),
    Broken(DecodeError),
}

/// The error reported for an object that cannot be decoded, with the identity of the object.
///
/// Other objects are not affected. A cache keeps the object's last valid state, if any, and reports this
/// error.
#[derive(Debug, thiserror::Error)]
#[error("object {:?} at resourceVersion {}: {source}", .identity.key(), .identity.resource_version().unwrap_or("unknown"))]
#[non_exhaustive]
pub struct ItemError {
    /// The identity and version of the object.
    pub identity: Identity,
    /// The decoding error.
    #[source]
    pub source: DecodeError,
}

impl<K> ReceivedItem<K> {
    /// Creates an item from `bytes`, to be decoded by `decoder`.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the object has a different kind or no name. Such an object can be neither
    /// applied nor quarantined.
    pub fn new(bytes: Bytes, kind: &str, decoder: Arc<dyn Decode<K>>) -> Result<Self, DecodeError> {
        let identity = decoder.identify(&bytes, kind)?;
        Ok(Self { identity, body: Body::Bytes(bytes, decoder) })
    }

    /// Creates an item from a decoded object.
    pub fn decoded(identity: Identity, object: Arc<K>) -> Self {
        Self { identity, body: Body::Decoded(object) }
    }

    /// Creates an item whose decoding fails with `source`.
    pub fn broken(identity: Identity, source: DecodeError) -> Self {
        Self { identity, body: Body::Broken(source) }
    }

    /// Returns the identity and version of the object.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the bytes that the object is decoded from; `None` for an object that was never encoded.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Bytes(bytes, _) => Some(bytes),
            Body::Decoded(_) | Body::Broken(_) => None,
        }
    }

    /// Returns the decoder of the bytes; `None` for an object that was never encoded.
    pub fn decoder(&self) -> Option<&Arc<dyn Decode<K>>> {
        match &self.body {
            Body::Bytes(_, decoder) => Some(decoder),
            Body::Decoded(_) | Body::Broken(_) => None,
        }
    }

    /// Returns the bytes of the object for comparison with another object; `None` for an object that was never encoded.
    pub fn content(&self) -> Option<Content> {
        match &self.body {
            Body::Bytes(bytes, decoder) => Some(Content::new(bytes.clone(), decoder.encoding())),
            Body::Decoded(_) | Body::Broken(_) => None,
        }
    }

    /// Decodes the object and frees its bytes.
    ///
    /// # Errors
    /// Returns an [`ItemError`] that names the object if the bytes are not a `K`.
    pub fn decode(self) -> Result<Arc<K>, ItemError> {
        let decoded = match self.body {
            Body::Bytes(bytes, decoder) => decoder.decode(&bytes).map(Arc::new),
            Body::Decoded(object) => Ok(object),
            Body::Broken(source) => Err(source),
        };
        decoded.map_err(|source| ItemError { identity: self.identity, source })
    }
}

impl<K> fmt::Debug for ReceivedItem<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedItem").field("identity", &self.identity).finish_non_exhaustive()
    }
}
