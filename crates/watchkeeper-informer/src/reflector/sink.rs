//! What a reflector tells, and to whom.

use std::sync::Arc;

use tokio::sync::mpsc;
use watchkeeper_client::decode::Identity;

/// An object as the server sent it, decoded and transformed, and which version of it this is.
#[derive(Debug)]
pub struct Object<K> {
    /// Key, uid and resourceVersion as they came over the wire, whatever a transform made of the object.
    pub identity: Identity,
    /// The object.
    pub object: Arc<K>,
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self { identity: self.identity.clone(), object: Arc::clone(&self.object) }
    }
}

/// The whole collection as of one version.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replacement<K> {
    /// Every object there is, in the order of the list.
    pub objects: Vec<Object<K>>,
    /// Objects that exist and could not be decoded in their present version. They are not deleted: a sink that holds one
    /// of them in an earlier version, under the same uid, keeps it. What it holds of that name under another uid is
    /// gone.
    pub kept: Vec<Identity>,
    /// The version this is true for.
    pub resource_version: String,
    /// Whether the server's versions began anew (its storage was restored from a backup, say), so that versions from
    /// before do not compare with those from now on: a lower one may be newer, and the same one may be another.
    pub is_new_epoch: bool,
}

/// One thing that happened to the collection.
///
/// Changes come in the order of the server's history, except that a [`Change::Replaced`] may leap over any stretch of it.
/// None is ever left out: what cannot be told as a change of its own is part of the next replacement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Change<K> {
    /// The object came to be, or came to match the selectors. It may be held already, if the server says so twice.
    Added(Object<K>),
    /// The object changed.
    Updated(Object<K>),
    /// The object is gone, or matches the selectors no more.
    Deleted {
        /// Which object; its version is that of the deletion.
        identity: Identity,
        /// Its last state; none when that could not be decoded, and then the last state held has to do.
        object: Option<Arc<K>>,
    },
    /// The collection is this, and nothing else.
    Replaced(Replacement<K>),
    /// Nothing else happened up to this version.
    Bookmark {
        /// The version.
        resource_version: String,
    },
    /// It is time to go over everything again. Not a change at all, and not from the server.
    Resync,
}

/// The sink was closed; there is nobody left to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of the reflector's changes is gone")]
pub struct SinkClosed;

/// Where a reflector's changes go.
///
/// A sink that is full makes the reflector wait, and the reflector then does not read: the server's connection fills up,
/// and memory here does not.
pub trait DeltaSink<K>: Send {
    /// Takes a change, when there is room for it. Dropped before it is done, it may or may not have taken the change:
    /// the reflector does that only when it ends.
    ///
    /// # Errors
    /// When nobody is there to take changes any more. The reflector then ends.
    fn push(&mut self, change: Change<K>) -> impl Future<Output = Result<(), SinkClosed>> + Send;
}

impl<K: Send + Sync> DeltaSink<K> for mpsc::Sender<Change<K>> {
    async fn push(&mut self, change: Change<K>) -> Result<(), SinkClosed> {
        self.send(change).await.map_err(|_| SinkClosed)
    }
}
