//! The view of a cache that write tracking needs.

use std::{collections::BTreeMap, sync::Arc};

use watchkeeper_informer::{ObjectKey, ResourceVersion};

use super::Target;

/// The state of a cache, as compared with an expected write.
pub(crate) trait CacheView: Send + Sync {
    /// Returns the cached state of an object, or `None` if the cache does not contain the object.
    fn state_of(&self, object: &ObjectKey) -> Option<CachedState>;
    /// Returns the resourceVersion up to which the cache misses no change.
    fn complete_to(&self) -> Option<ResourceVersion>;
    /// Returns the history epoch, which increases each time the server's history is found to have been replaced.
    fn epoch(&self) -> u64;
}

/// The metadata of a cached object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CachedState {
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    /// Whether the object has a deletion timestamp and waits for its finalizers.
    pub(crate) is_terminating: bool,
}

/// Whether the namespaces and selectors of an informer include an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    Inside,
    Outside,
    /// The metadata of the object does not determine the coverage.
    Unknown,
}

/// A cache of the controller whose resource reconcilers may write.
pub(crate) trait TrackedCache: CacheView {
    /// Returns the name of the informer.
    fn informer(&self) -> &str;
    /// Returns the name of the resource, for messages.
    fn resource(&self) -> &Arc<str>;
    /// Returns whether the informer watches the resource and namespace that a request writes to, and has synced.
    fn watches(&self, target: &Target<'_>) -> bool;
    /// Returns whether the informer selects an object with these labels; `None` stands for unknown labels.
    fn coverage(&self, object: &ObjectKey, labels: Option<&BTreeMap<String, String>>) -> Coverage;
}
