//! Reusing, decoding and transforming received objects.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use watchkeeper_client::{
    decode::{Content, DecodeError, Identity},
    list_watch::ReceivedItem,
};

use super::quarantine::{QuarantineCause, Quarantined};
use crate::Cached;

/// A lookup of cached objects, so that a list need not decode them again.
pub trait VersionLookup<K>: Send + Sync + 'static {
    /// Returns the cached object with exactly this key, uid and resourceVersion.
    fn lookup(&self, identity: &Identity) -> Option<Cached<K>>;
}

impl<K, F> VersionLookup<K> for F
where
    F: Fn(&Identity) -> Option<Cached<K>> + Send + Sync + 'static,
{
    fn lookup(&self, identity: &Identity) -> Option<Cached<K>> {
        self(identity)
    }
}

/// The error returned by a transform that rejects an object.
///
/// The object is quarantined, and the text is logged and reported, so it must not contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(String);

impl TransformError {
    /// Creates an error with this reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// A received object: the decoded object, or the reason why it was rejected.
#[derive(Debug)]
pub(crate) struct Incoming<K> {
    pub(crate) identity: Identity,
    pub(crate) object: Result<Cached<K>, ObjectRejection>,
    /// The content that the object was decoded from, if any.
    pub(crate) content: Option<Content>,
}

/// The reason why an object was rejected.
#[derive(Debug)]
pub(crate) struct ObjectRejection {
    cause: QuarantineCause,
    error: String,
}

impl ObjectRejection {
    pub(crate) fn new(cause: QuarantineCause, error: String) -> Self {
        Self { cause, error }
    }

    pub(crate) fn cause(&self) -> QuarantineCause {
        self.cause
    }

    pub(crate) fn reason(&self) -> &str {
        &self.error
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

/// A stored transform function.
pub(crate) type Transform<K> = Arc<dyn Fn(Arc<K>) -> Result<Arc<K>, TransformError> + Send + Sync>;

/// The last step of the processing of a received object: in which form it is kept.
pub(crate) trait Keep<K>: Send + Sync {
    /// Decodes and transforms an object as far as necessary.
    fn keep(&self, item: ReceivedItem<K>) -> Result<Cached<K>, ObjectRejection>;
}

impl From<DecodeError> for ObjectRejection {
    fn from(error: DecodeError) -> Self {
        Self::new(QuarantineCause::Decode, error.to_string())
    }
}

/// Keeps objects decoded.
struct KeepDecoded<K>(Option<Transform<K>>);

impl<K> Keep<K> for KeepDecoded<K> {
    fn keep(&self, item: ReceivedItem<K>) -> Result<Cached<K>, ObjectRejection> {
        transformed(self.0.as_ref(), decoded(item)?).map(Cached::from)
    }
}

/// Decodes a received object.
pub(crate) fn decoded<K>(item: ReceivedItem<K>) -> Result<Arc<K>, ObjectRejection> {
    item.decode().map_err(|error| error.source.into())
}

/// Returns the object that the transform, if any, returns for this one.
pub(crate) fn transformed<K>(
    transform: Option<&Transform<K>>,
    object: Arc<K>,
) -> Result<Arc<K>, ObjectRejection> {
    let Some(transform) = transform else {
        return Ok(object);
    };
    let rejected = |error| ObjectRejection::new(QuarantineCause::Transform, error);
    // A panic of a user function affects one object, and the others are processed.
    match catch_unwind(AssertUnwindSafe(|| transform(object))) {
        Ok(transformed) => {
            transformed.map_err(|error| rejected(format!("the transform rejected the object: {error}")))
        }
        Err(_) => Err(rejected("the transform panicked".to_owned())),
    }
}

/// The processing of received objects. A reused object is neither decoded nor transformed again.
pub(crate) struct Intake<K> {
    lookup: Option<Arc<dyn VersionLookup<K>>>,
    keep: Arc<dyn Keep<K>>,
}

impl<K: 'static> Default for Intake<K> {
    fn default() -> Self {
        Self { lookup: None, keep: Arc::new(KeepDecoded(None)) }
    }
}

impl<K: 'static> Intake<K> {
    pub(crate) fn set_lookup(&mut self, lookup: impl VersionLookup<K>) {
        self.lookup = Some(Arc::new(lookup));
    }

    /// Keeps objects decoded, after they were transformed.
    pub(crate) fn set_transform(&mut self, transform: Transform<K>) {
        self.keep = Arc::new(KeepDecoded(Some(transform)));
    }

    /// Sets the form in which objects are kept, including their transform.
    pub(crate) fn set_keep(&mut self, keep: Arc<dyn Keep<K>>) {
        self.keep = keep;
    }

    /// Returns the cached object, if it has exactly this version.
    pub(crate) fn lookup(&self, identity: &Identity) -> Option<Cached<K>> {
        // Without both, two objects cannot be distinguished.
        identity.uid().and(identity.resource_version())?;
        self.lookup.as_ref()?.lookup(identity)
    }

    pub(crate) fn take(&self, item: ReceivedItem<K>) -> Incoming<K> {
        let identity = item.identity().clone();
        let content = item.content();
        let object = self.keep.keep(item);
        Incoming { identity, object, content }
    }
}
