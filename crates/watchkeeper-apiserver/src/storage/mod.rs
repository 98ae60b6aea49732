//! Storage of objects with their history.
//!
//! Every write gets the next number of one sequence, the resourceVersion. The history of each table (all objects of one
//! resource) is kept within a window. From any version inside the window a watch can resume and a list can read the exact
//! state; older versions are expired. Objects are shared, never copied for a reader.

mod log;
mod memory;
mod object;
mod table;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::SystemTime};

use tokio::sync::watch;

pub(crate) use log::{Event, EventType, HeldBytes, Log, Position, SharedFrame};
pub(crate) use memory::{HistoryWindow, MemoryStore};
pub(crate) use object::{Content, Object};

/// The precondition of a commit on the current object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// The object must not exist.
    Absent,
    /// The object must exist with this version.
    Version(u64),
}

/// The error for a commit whose precondition does not hold.
#[derive(Debug, Clone)]
pub(crate) struct Conflict {
    /// The current object, if any.
    pub(crate) current: Option<Arc<Object>>,
}

/// The parameters of a list.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    /// The prefix of the keys: `namespace/`, or empty for all.
    pub(crate) prefix: &'a str,
    /// The first key of the page.
    pub(crate) start: &'a str,
    /// The version to read; the newest if none.
    pub(crate) at: Option<u64>,
    /// The maximum number of objects in the page.
    pub(crate) limit: Option<usize>,
    /// The filter of objects; all if none.
    pub(crate) filter: Option<&'a dyn Fn(&Object) -> bool>,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    /// The version of the list.
    pub(crate) version: u64,
    /// The objects, in order.
    pub(crate) objects: Vec<Arc<Object>>,
    /// The key of the first object after the page and the number of remaining objects, if any remain.
    pub(crate) rest: Option<(String, usize)>,
}

/// The error for a version before the history window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The oldest version that can be read.
    pub(crate) oldest: u64,
}

/// A store of objects.
///
/// A commit is atomic and gets the next version. It is in the log of its table before it returns, and every read that starts
/// later sees it.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// Returns the version of the newest write.
    fn version(&self) -> u64;

    /// Returns a receiver of the newest version over all tables.
    fn subscribe(&self) -> watch::Receiver<u64>;

    /// Returns the object of `table` under `key`.
    fn get(&self, table: &str, key: &str) -> Option<Arc<Object>>;

    /// Returns the number of objects in `table`.
    fn count(&self, table: &str) -> usize;

    /// Writes an object if the current object is as expected.
    fn put(
        &self,
        table: &str,
        content: Content,
        expected: Precondition,
        now: SystemTime,
    ) -> Result<Arc<Object>, Conflict>;

    /// Deletes an object of `version`. Returns the version of the deletion.
    fn delete(&self, table: &str, key: &str, version: u64, now: SystemTime) -> Result<u64, Conflict>;

    /// Returns a page of the objects of `table`.
    fn list(&self, table: &str, query: Query<'_>, now: SystemTime) -> Result<Page, Expired>;

    /// Returns the history of `table`.
    fn log(&self, table: &str) -> Arc<Log>;

    /// Drops the whole history: every version before the newest expires.
    fn compact(&self);
}
