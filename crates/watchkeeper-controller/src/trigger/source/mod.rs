//! Sources of keys: informers whose events enqueue keys.

mod delivery;
mod informer;

use futures_util::future::BoxFuture;
use watchkeeper_informer::{
    handler::Stopped,
    status::{Status, SyncError},
};

pub(crate) use self::{
    delivery::{Delivery, EventRule, Role},
    informer::InformerSource,
};
use crate::{rbac::Access, reconcile::Caches, writes::TrackedCache};

/// The status of one source of a controller.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceStatus {
    /// The name of the informer.
    pub name: String,
    /// Whether the controller can run without this source.
    pub is_optional: bool,
    /// The status of the informer.
    pub status: Status,
}

/// A source of keys, independent of the type of its objects.
pub(crate) trait Source: TrackedCache {
    /// Returns the name of the informer.
    fn name(&self) -> &str;
    /// Returns whether the controller can run without this source.
    fn is_optional(&self) -> bool;
    /// Returns the status of the informer.
    fn status(&self) -> Status;
    /// Returns the API access that the source needs.
    fn access(&self) -> Vec<Access>;
    /// Adds the cache of this source to the controller's caches.
    fn add_cache(&self, caches: &mut Caches);
    /// Connects the source to the queue: its events enqueue keys from now on.
    fn connect(&self, delivery: Delivery) -> Result<Box<dyn Connection>, Stopped>;
    /// Starts the informer, if it is not running.
    fn start(&self);
}

/// A connection from a source to a queue, which ends when dropped.
pub(crate) trait Connection: Send + Sync {
    /// Waits until the initial list has been enqueued.
    fn ready(&self) -> BoxFuture<'_, Result<(), SyncError>>;
    /// Waits until the source is ready, or returns its status if it fails in any way.
    fn settled(&self) -> BoxFuture<'_, Result<(), Status>>;
}
