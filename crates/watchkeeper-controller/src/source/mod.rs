//! Where keys come from.

mod feed;
mod informer;
mod watching;

use futures_util::future::BoxFuture;
use watchkeeper_informer::{
    handler::Stopped,
    status::{Status, SyncError},
};

pub use self::watching::Watching;
pub(crate) use self::{
    feed::{Feed, Role},
    informer::InformerSource,
};
use crate::{access::Access, context::Caches};

/// How one of a controller's sources is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceStatus {
    /// What it is of: the informer's name.
    pub name: String,
    /// Whether the controller goes without it when it must.
    pub is_optional: bool,
    /// What it is doing.
    pub status: Status,
}

/// A source of keys, whatever its objects are.
pub(crate) trait Source: Send + Sync {
    /// What it is of.
    fn name(&self) -> &str;
    /// Whether the controller goes without it when it must.
    fn is_optional(&self) -> bool;
    /// What it is doing.
    fn status(&self) -> Status;
    /// What it does to the API.
    fn access(&self) -> Vec<Access>;
    /// Adds its cache to those of the controller.
    fn add_cache(&self, caches: &mut Caches);
    /// Has its events feed the queue from now on.
    fn connect(&self, feed: Feed) -> Result<Box<dyn Connection>, Stopped>;
    /// Starts it, if it was not.
    fn start(&self);
}

/// A source that feeds a queue, until it is dropped.
pub(crate) trait Connection: Send + Sync {
    /// Waits until everything that was there at first is in the queue.
    fn ready(&self) -> BoxFuture<'_, Result<(), SyncError>>;
    /// Waits until it is ready or has trouble, of whatever kind; then with what trouble.
    fn settled(&self) -> BoxFuture<'_, Result<(), Status>>;
}
