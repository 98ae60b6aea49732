//! What a reconciler is asked to look at.

use std::{fmt, sync::Arc};

use watchkeeper_informer::ObjectKey;
use watchkeeper_workqueue::{Causes, Priority};

/// One key to be looked at, and what is known of it.
///
/// A reconciler brings the world to where the object wants it, from whatever state it is in: it is told *that* something
/// may have changed, and why for the sake of logs, but any number of changes may be behind one request, and none.
#[non_exhaustive]
pub struct Request<K> {
    /// The key.
    pub key: ObjectKey,
    /// The object, as the cache has it. None when it is gone, which is a case like any other: what is left of it can be
    /// tidied up.
    pub object: Option<Arc<K>>,
    /// Why it is looked at: every cause that was merged into this request.
    pub causes: Causes,
    /// How often it has failed since it last went well.
    pub failures: u32,
    /// How urgent it was.
    pub priority: Priority,
}

impl<K> Request<K> {
    /// A request for this key, without causes: for tests of a reconciler.
    pub fn new(key: ObjectKey, object: Option<Arc<K>>) -> Self {
        Self { key, object, causes: Causes::default(), failures: 0, priority: Priority::NORMAL }
    }

    /// The namespace of the object; none if it is in none.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// The name of the object.
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

// Objects may hold secrets, so it is only shown whether there is one.
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
