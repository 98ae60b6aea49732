//! Changes of a collection and their receiver.

use tokio::sync::mpsc;
use watchkeeper_client::decode::Identity;

use crate::Cached;

/// A received object, decoded and transformed, with its identity.
#[derive(Debug)]
pub struct ReceivedObject<K> {
    /// The key, uid and resourceVersion on the wire, before any transform.
    pub identity: Identity,
    /// The decoded and transformed object.
    pub object: Cached<K>,
}

impl<K> Clone for ReceivedObject<K> {
    fn clone(&self) -> Self {
        Self { identity: self.identity.clone(), object: self.object.clone() }
    }
}

/// The whole collection as of one resourceVersion.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replacement<K> {
    /// All objects, in the order of the list.
    pub objects: Vec<ReceivedObject<K>>,
    /// The objects that exist but could not be decoded in their current version. They are not deleted: a sink
    /// that contains an earlier version with the same uid keeps it. An object with the same name and another
    /// uid was deleted.
    pub kept: Vec<Identity>,
    /// The resourceVersion of the list.
    pub resource_version: String,
    /// Whether the server's history was replaced, for example by a restore from a backup. Versions of the
    /// earlier history then do not compare with later ones: a lower version may be newer, and the same
    /// version may be another state.
    pub is_new_epoch: bool,
}

/// A change of a collection.
///
/// Changes arrive in the order of the server's history, except that a [`WatchDelta::Replaced`] may skip any
/// part of it. No change is lost: a change that is not reported by itself is contained in the next
/// replacement.
#[derive(Debug)]
#[non_exhaustive]
#[doc(alias = "ReplacedAll")]
pub enum WatchDelta<K> {
    /// The object was created, or started to match the selectors. The sink may already contain it.
    Added(ReceivedObject<K>),
    /// The object was modified.
    Updated(ReceivedObject<K>),
    /// The object was deleted, or stopped to match the selectors.
    Deleted {
        /// The identity of the object. Its version is that of the deletion.
        identity: Identity,
        /// The final state of the object, or `None` if it could not be decoded. The sink then uses the last
        /// state it has.
        object: Option<Cached<K>>,
    },
    /// The collection was listed and consists of exactly these objects.
    Replaced(Replacement<K>),
    /// All changes up to this resourceVersion were reported.
    Bookmark {
        /// The resourceVersion of the bookmark.
        resource_version: String,
    },
    /// A resync is due. This is not a change, and does not come from the server.
    Resync,
}

/// The error returned by a [`DeltaSink`] whose receiver was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of the reflector's changes was dropped")]
pub struct SinkClosed;

/// The receiver of a reflector's changes.
///
/// A full sink makes the reflector wait instead of reading, so that the server's connection is throttled and
/// the memory is bounded.
#[doc(alias = "ReflectorStore")]
pub trait DeltaSink<K>: Send {
    /// Accepts a change, waiting for capacity. If the future is dropped, the change may or may not have
    /// been accepted; the reflector drops it only when it ends.
    ///
    /// # Errors
    /// Returns [`SinkClosed`] if the receiver was dropped. The reflector then ends.
    fn push(&mut self, change: WatchDelta<K>) -> impl Future<Output = Result<(), SinkClosed>> + Send;
}

impl<K: Send + Sync> DeltaSink<K> for mpsc::Sender<WatchDelta<K>> {
    async fn push(&mut self, change: WatchDelta<K>) -> Result<(), SinkClosed> {
        self.send(change).await.map_err(|_| SinkClosed)
    }
}
