//! Reusing, decoding and transforming received objects.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use watchkeeper_client::{
    decode::{Content, Identity},
    list_watch::ReceivedItem,
};

use crate::Cached;

use super::quarantine::{QuarantineCause, Quarantined};

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

/// The processing of received objects. An object is transformed once, when it is received. A reused object is
/// not transformed again.
pub(crate) struct Intake<K> {
    lookup: Option<Arc<dyn VersionLookup<K>>>,
    transform: Option<Transform<K>>,
}

impl<K> Default for Intake<K> {
    fn default() -> Self {
        Self { lookup: None, transform: None }
    }
}

impl<K: 'static> Intake<K> {
    pub(crate) fn set_lookup(&mut self, lookup: impl VersionLookup<K>) {
        self.lookup = Some(Arc::new(lookup));
    }

    pub(crate) fn set_transform(&mut self, transform: Transform<K>) {
        self.transform = Some(transform);
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
        let object = item
            .decode()
            .map_err(|error| ObjectRejection::new(QuarantineCause::Decode, error.source.to_string()))
            .and_then(|object| self.transformed(object))
            .map(Cached::from);
        Incoming { identity, object, content }
    }

    fn transformed(&self, object: Arc<K>) -> Result<Arc<K>, ObjectRejection> {
        let Some(transform) = &self.transform else {
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
}
