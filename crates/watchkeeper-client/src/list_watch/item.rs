//! One object on its way in.

use std::{fmt, sync::Arc};

use bytes::Bytes;

use crate::decode::{Decode, DecodeError, Identity, probe_kind};

/// An object that has been named and not yet decoded.
///
/// Its [`Identity`] is known, so a cache that has this very version can drop the item and save itself the decoding. Until
/// it is decoded or dropped it holds the bytes it came in, which may be a slice of a larger chunk: decide soon.
#[must_use = "an item that is dropped undecoded is an object passed over"]
pub struct Item<K> {
    identity: Identity,
    body: Body<K>,
}

enum Body<K> {
    Bytes(Bytes, Arc<dyn Decode<K>>),
    Decoded(Arc<K>),
    Broken(DecodeError),
}

/// Why one object could not be decoded, and which object it was.
///
/// Its siblings are not concerned. Whoever keeps a cache keeps the object's last good state, if there is one, and
/// reports this.
#[derive(Debug, thiserror::Error)]
#[error("object {:?} at resourceVersion {}: {source}", .identity.key(), .identity.resource_version().unwrap_or("unknown"))]
#[non_exhaustive]
pub struct ItemError {
    /// Which object, in which version.
    pub identity: Identity,
    /// What is wrong with it.
    #[source]
    pub source: DecodeError,
}

impl<K> Item<K> {
    /// The object in `bytes`, to be decoded by `decoder`.
    ///
    /// # Errors
    /// When the object says that it is of another kind, or does not say what it is called: then it can be neither
    /// applied nor set aside.
    pub fn new(bytes: Bytes, kind: &str, decoder: Arc<dyn Decode<K>>) -> Result<Self, DecodeError> {
        let identity = probe_kind(&bytes, kind)?;
        Ok(Self { identity, body: Body::Bytes(bytes, decoder) })
    }

    /// An object that is decoded already.
    pub fn decoded(identity: Identity, object: Arc<K>) -> Self {
        Self { identity, body: Body::Decoded(object) }
    }

    /// An object that will turn out not to be decodable.
    pub fn broken(identity: Identity, source: DecodeError) -> Self {
        Self { identity, body: Body::Broken(source) }
    }

    /// Which object, in which version.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the bytes the object is decoded from; `None` for an object that was never encoded.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Bytes(bytes, _) => Some(bytes),
            Body::Decoded(_) | Body::Broken(_) => None,
        }
    }

    /// Decodes the object; its bytes are gone afterwards.
    ///
    /// # Errors
    /// When the bytes are not a `K`. The error names the object.
    pub fn decode(self) -> Result<Arc<K>, ItemError> {
        let decoded = match self.body {
            Body::Bytes(bytes, decoder) => decoder.decode(&bytes).map(Arc::new),
            Body::Decoded(object) => Ok(object),
            Body::Broken(source) => Err(source),
        };
        decoded.map_err(|source| ItemError { identity: self.identity, source })
    }
}

impl<K> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item").field("identity", &self.identity).finish_non_exhaustive()
    }
}
