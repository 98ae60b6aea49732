//! Objects, with their history.
//!
//! Every write of any object gets the next number of one sequence, the resourceVersion. The history of each table (all
//! objects of one resource) is kept within a window: from any version inside it a watch can be resumed and a list read
//! exactly as it was; what lies before it is expired. Objects are shared, never copied for a reader.

mod log;
mod memory;
mod object;
mod table;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::SystemTime};

use tokio::sync::watch;

pub(crate) use log::{Change, Event, HeldBytes, Log, Position, SharedFrame};
pub(crate) use memory::{HistoryWindow, MemoryStore};
pub(crate) use object::{Content, Object};

/// What must be true of the current object for a commit to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// There is none.
    Absent,
    /// There is one, of this version.
    Version(u64),
}

/// A commit that did not happen because something else was there.
#[derive(Debug, Clone)]
pub(crate) struct Conflict {
    /// What was there.
    pub(crate) current: Option<Arc<Object>>,
}

/// What a list asks for.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    /// Keys begin with this: `namespace/`, or nothing for all.
    pub(crate) prefix: &'a str,
    /// The first key of the page.
    pub(crate) start: &'a str,
    /// As of this version; now, if none.
    pub(crate) at: Option<u64>,
    /// How many objects fit into the page.
    pub(crate) limit: Option<usize>,
    /// Which objects are wanted; all, if none.
    pub(crate) filter: Option<&'a dyn Fn(&Object) -> bool>,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    /// The version the list is true for.
    pub(crate) version: u64,
    /// The objects, in order.
    pub(crate) objects: Vec<Arc<Object>>,
    /// The key of the first object after the page, if there is one, and how many there are from it on.
    pub(crate) rest: Option<(String, usize)>,
}

/// A version from before the history window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The oldest version that can be asked for.
    pub(crate) oldest: u64,
}

/// A place to keep objects.
///
/// A commit is atomic, gets the next version and is in the log of its table before it is answered; what was committed is
/// seen by every read that starts later.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// The version of the newest write.
    fn version(&self) -> u64;

    /// Tells a reader of all tables when there is something new.
    fn subscribe(&self) -> watch::Receiver<u64>;

    /// The object of `table` under `key`.
    fn get(&self, table: &str, key: &str) -> Option<Arc<Object>>;

    /// How many objects `table` has.
    fn count(&self, table: &str) -> usize;

    /// Puts an object, if what is there now is as expected.
    fn put(
        &self,
        table: &str,
        content: Content,
        expected: Expected,
        now: SystemTime,
    ) -> Result<Arc<Object>, Conflict>;

    /// Deletes an object of `version`; answers the version of the deletion.
    fn delete(&self, table: &str, key: &str, version: u64, now: SystemTime) -> Result<u64, Conflict>;

    /// A page of the objects of `table`.
    fn list(&self, table: &str, query: Query<'_>, now: SystemTime) -> Result<Page, Expired>;

    /// The history of `table`.
    fn log(&self, table: &str) -> Arc<Log>;

    /// Drops all history: every version before the newest is expired.
    fn compact(&self);
}
