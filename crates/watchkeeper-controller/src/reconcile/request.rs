//! The input of a reconcile.

use std::{fmt, sync::Arc};

use watchkeeper_informer::ObjectKey;
use watchkeeper_workqueue::{Causes, Priority};

/// A key to reconcile, with its cached object and the reason for the reconcile.
///
/// A reconciler makes the actual state match the desired state from any starting point. The causes are meant
/// for logs: one request may stand for any number of changes, including none.
#[non_exhaustive]
#[doc(alias = "AsReconciler")]
#[doc(alias = "ReconcileReason")]
pub struct Request<K> {
    /// The key of the object.
    pub key: ObjectKey,
    /// The cached object. `None` if it was deleted, in which case the reconciler cleans up its remains. The reconciler is
    /// not called for an object that cannot be decoded; its key fails with a terminal error.
    pub object: Option<Arc<K>>,
    /// The causes that were merged into this request.
    pub causes: Causes,
    /// The number of failures since the last success.
    pub failures: u32,
    /// The priority with which the key was queued.
    pub priority: Priority,
}

impl<K> Request<K> {
    /// Creates a request without causes, for tests of a reconciler.
    pub fn new(key: ObjectKey, object: Option<Arc<K>>) -> Self {
        Self { key, object, causes: Causes::default(), failures: 0, priority: Priority::NORMAL }
    }

    /// Returns the namespace of the object; `None` if it is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// Returns the name of the object.
    pub fn name(&self) -> &str {
        self.key.name()
    }
}

impl<K> Clone for Request<K> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            object: self.object.clone(),
            causes: self.causes.clone(),
            failures: self.failures,
            priority: self.priority,
        }
    }
}

// The object may contain secrets, so only its presence is shown.
impl<K> fmt::Debug for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.key)
            .field("is_there", &self.object.is_some())
            .field("causes", &self.causes)
            .field("failures", &self.failures)
            .field("priority", &self.priority)
            .finish()
    }
}
