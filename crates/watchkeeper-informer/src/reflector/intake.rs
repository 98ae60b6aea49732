//! From an item on the wire to an object for the cache: recognised, or decoded and transformed.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use watchkeeper_client::{decode::Identity, list_watch::Item};

use super::quarantine::{Cause, Quarantined};

/// What is already held, so that a list need not decode it again.
pub trait Known<K>: Send + Sync + 'static {
    /// The object, if it is held under this key with this uid and this resourceVersion, as it went into the cache.
    fn known(&self, identity: &Identity) -> Option<Arc<K>>;
}

impl<K, F> Known<K> for F
where
    F: Fn(&Identity) -> Option<Arc<K>> + Send + Sync + 'static,
{
    fn known(&self, identity: &Identity) -> Option<Arc<K>> {
        self(identity)
    }
}

/// Why a transform refuses an object. The object is quarantined, and this is what is reported: keep its contents out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(String);

impl TransformError {
    /// A refusal for this reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// An item taken in: the object, or why there is none.
#[derive(Debug)]
pub(crate) struct Incoming<K> {
    pub(crate) identity: Identity,
    pub(crate) object: Result<Arc<K>, Rejection>,
    /// The bytes it was decoded from, if there were any.
    pub(crate) content: Option<Bytes>,
}

/// Why an item could not be taken in.
#[derive(Debug)]
pub(crate) struct Rejection {
    cause: Cause,
    error: String,
}

impl Rejection {
    pub(crate) fn new(cause: Cause, error: String) -> Self {
        Self { cause, error }
    }

    pub(crate) fn report(&self, identity: &Identity) -> Quarantined {
        Quarantined {
            key: identity.key().into(),
            resource_version: identity.resource_version().map(Into::into),
            cause: self.cause,
            error: self.error.as_str().into(),
        }
    }
}

/// A transform as it is kept.
pub(crate) type Transform<K> = Arc<dyn Fn(Arc<K>) -> Result<Arc<K>, TransformError> + Send + Sync>;

/// The way in. An object is transformed once, when it is received, and an object recognised as held is not received.
pub(crate) struct Intake<K> {
    known: Option<Arc<dyn Known<K>>>,
    transform: Option<Transform<K>>,
}

impl<K> Default for Intake<K> {
    fn default() -> Self {
        Self { known: None, transform: None }
    }
}

impl<K: 'static> Intake<K> {
    pub(crate) fn set_known(&mut self, known: impl Known<K>) {
        self.known = Some(Arc::new(known));
    }

    pub(crate) fn set_transform(&mut self, transform: Transform<K>) {
        self.transform = Some(transform);
    }

    /// The object as it is held, if this very version of it is.
    pub(crate) fn recognise(&self, identity: &Identity) -> Option<Arc<K>> {
        // Without both, two objects cannot be told apart.
        identity.uid().and(identity.resource_version())?;
        self.known.as_ref()?.known(identity)
    }

    pub(crate) fn take(&self, item: Item<K>) -> Incoming<K> {
        let identity = item.identity().clone();
        let content = item.bytes().cloned();
        let object = item
            .decode()
            .map_err(|error| Rejection::new(Cause::Decode, error.source.to_string()))
            .and_then(|object| self.transformed(object));
        Incoming { identity, object, content }
    }

    fn transformed(&self, object: Arc<K>) -> Result<Arc<K>, Rejection> {
        let Some(transform) = &self.transform else {
            return Ok(object);
        };
        let rejected = |error| Rejection::new(Cause::Transform, error);
        // One object that a user's function cannot stand is no reason to stop following the others.
        match catch_unwind(AssertUnwindSafe(|| transform(object))) {
            Ok(transformed) => {
                transformed.map_err(|error| rejected(format!("the transform refused it: {error}")))
            }
            Err(_) => Err(rejected("the transform panicked".to_owned())),
        }
    }
}
