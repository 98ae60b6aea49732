//! Storage in memory.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::{
    Conflict, Content, Event, EventType, Expired, HeldBytes, Log, Object, Page, Precondition, Query,
    SharedFrame, Storage, table::Table,
};

/// The version of an empty store. Zero means "any" in requests, so no list may return zero.
const FIRST_VERSION: u64 = 1;

/// The limits of the history. The number and the age of events apply to each table, the bytes to all tables together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryWindow {
    /// The maximum number of events.
    pub(crate) events: usize,
    /// The maximum age of events.
    pub(crate) age: Duration,
    /// The maximum bytes of objects, over all tables.
    pub(crate) bytes: usize,
}

/// An in-memory store. All tables share one lock, which is held only to look up or to insert a pointer.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    window: HistoryWindow,
    /// The memory of the history of all tables, in bytes.
    held: HeldBytes,
    tables: RwLock<Tables>,
    /// The newest version. Published after the event is in its log: a reader that reads this first and then reads its log to
    /// the end has read every event up to this version.
    version: AtomicU64,
    /// The newest version, for tasks that wait for it.
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Tables {
    by_name: BTreeMap<Box<str>, Table>,
    version: u64,
    /// The version of the last compaction. Tables created later have no history before it either.
    compacted: u64,
}

impl MemoryStore {
    /// Creates an empty store.
    pub(crate) fn new(window: HistoryWindow) -> Self {
        Self {
            window,
            held: HeldBytes::default(),
            tables: RwLock::new(Tables { by_name: BTreeMap::new(), version: FIRST_VERSION, compacted: 0 }),
            version: AtomicU64::new(FIRST_VERSION),
            newest: watch::Sender::new(FIRST_VERSION),
        }
    }

    /// Drops the events of a table that exceed the number or the age.
    fn trim(&self, table: &mut Table, now: SystemTime) {
        table.drop_while(|oldest, count| count > self.window.events || self.is_too_old(oldest.at, now));
    }

    /// Drops the oldest events of the tables with the longest history while all tables together exceed the bytes.
    fn trim_bytes(&self, tables: &mut Tables) {
        while let Some(excess) = self.held.get().checked_sub(self.window.bytes).filter(|excess| *excess > 0) {
            let with_history = tables.by_name.values_mut().filter(|table| table.log.len() > 1);
            let Some(table) = with_history.max_by_key(|table| table.log.bytes()) else { return };
            let before = table.log.bytes();
            // A quarter at a time, so that not every event causes a search for the largest table.
            let goal = before.saturating_sub(excess.max(before / 4));
            let mut left = before;
            table.drop_while(|oldest, count| {
                // The newest event stays, because it is yet to be delivered.
                let is_over = left > goal && count > 1;
                left -= oldest.bytes().min(left);
                is_over
            });
        }
    }

    /// Returns whether an event of this time has left the window by age.
    fn is_too_old(&self, at: SystemTime, now: SystemTime) -> bool {
        now.duration_since(at).is_ok_and(|age| age > self.window.age)
    }

    /// Writes or deletes an object under the lock, after `check` has accepted the current object.
    fn commit(
        &self,
        table: &str,
        key: &str,
        expected: Precondition,
        content: Option<Content>,
        now: SystemTime,
    ) -> Result<(u64, Option<Arc<Object>>), Conflict> {
        let mut tables = self.tables.write();
        let tables = &mut *tables;
        let compacted = tables.compacted;
        if !tables.by_name.contains_key(table) {
            tables.by_name.insert(table.into(), Table::new(compacted, &self.held));
        }
        let Some(rows) = tables.by_name.get_mut(table) else { return Err(Conflict { current: None }) };
        let current = rows.get(key).cloned();
        let is_expected = match expected {
            Precondition::Absent => current.is_none(),
            Precondition::Version(version) => {
                current.as_ref().is_some_and(|current| current.version == version)
            }
        };
        if !is_expected {
            return Err(Conflict { current });
        }
        let version = tables.version + 1;
        let object = content.map(|content| Arc::new(Object { version, content }));
        let (change, event_object) = match (&object, &current) {
            (Some(object), None) => (EventType::Added, object),
            (Some(object), Some(_)) => (EventType::Modified, object),
            (None, Some(current)) => (EventType::Deleted, current),
            (None, None) => return Err(Conflict { current }),
        };
        let event = Event {
            version,
            at: now,
            change,
            object: Arc::clone(event_object),
            previous: (change == EventType::Modified).then(|| current.clone()).flatten(),
            frame: SharedFrame::default(),
        };
        tables.version = version;
        rows.put(key, version, object.clone());
        rows.log.push(event);
        self.trim(rows, now);
        let log = Arc::clone(&rows.log);
        self.trim_bytes(tables);
        self.version.store(version, Ordering::Release);
        log.wake(version);
        self.newest.send_replace(version);
        Ok((version, object))
    }
}

/// Returns the page of the matching objects among `candidates`, which are in order.
fn select(
    version: u64,
    candidates: Vec<Arc<Object>>,
    limit: Option<usize>,
    is_match: &dyn Fn(&Object) -> bool,
) -> Page {
    let mut objects = Vec::new();
    let mut candidates = candidates.into_iter();
    while let Some(object) = candidates.next() {
        if limit.is_some_and(|limit| objects.len() >= limit) {
            return Page { version, objects, rest: Some((object.content.key(), 1 + candidates.len())) };
        }
        if is_match(&object) {
            objects.push(object);
        }
    }
    Page { version, objects, rest: None }
}

impl Storage for MemoryStore {
    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn get(&self, table: &str, key: &str) -> Option<Arc<Object>> {
        self.tables.read().by_name.get(table)?.get(key).cloned()
    }

    fn count(&self, table: &str) -> usize {
        self.tables.read().by_name.get(table).map_or(0, Table::len)
    }

    fn put(
        &self,
        table: &str,
        content: Content,
        expected: Precondition,
        now: SystemTime,
    ) -> Result<Arc<Object>, Conflict> {
        let key = content.key();
        let (_, object) = self.commit(table, &key, expected, Some(content), now)?;
        object.ok_or(Conflict { current: None })
    }

    fn delete(&self, table: &str, key: &str, version: u64, now: SystemTime) -> Result<u64, Conflict> {
        self.commit(table, key, Precondition::Version(version), None, now).map(|(version, _)| version)
    }

    fn list(&self, table: &str, query: Query<'_>, now: SystemTime) -> Result<Page, Expired> {
        // Writes enforce the number of events; between writes, only age drops any. Checked under the read lock first, so
        // that lists do not wait for each other.
        let oldest_at = self.tables.read().by_name.get(table).and_then(|rows| rows.log.oldest_at());
        if oldest_at.is_some_and(|at| self.is_too_old(at, now))
            && let Some(rows) = self.tables.write().by_name.get_mut(table)
        {
            self.trim(rows, now);
        }
        let tables = self.tables.read();
        let version = query.at.unwrap_or(tables.version);
        let Some(rows) = tables.by_name.get(table) else {
            let oldest = tables.compacted;
            return if version < oldest {
                Err(Expired { oldest })
            } else {
                Ok(Page { version, objects: Vec::new(), rest: None })
            };
        };
        let oldest = rows.log.oldest();
        if version < oldest {
            return Err(Expired { oldest });
        }
        let mut range = rows.range(query.prefix, query.start, query.at);
        let Some(is_match) = query.filter else {
            let limit = query.limit.unwrap_or(usize::MAX);
            let objects = range.by_ref().take(limit).map(|(_, object)| Arc::clone(object)).collect();
            let rest = range.next().map(|(key, _)| key.to_owned());
            return Ok(Page { version, objects, rest: rest.map(|key| (key, 1 + range.count())) });
        };
        // Evaluating a selector can take long. Only pointers are copied while writers wait.
        let candidates: Vec<Arc<Object>> = range.map(|(_, object)| Arc::clone(object)).collect();
        drop(tables);
        Ok(select(version, candidates, query.limit, is_match))
    }

    fn log(&self, table: &str) -> Arc<Log> {
        if let Some(rows) = self.tables.read().by_name.get(table) {
            return Arc::clone(&rows.log);
        }
        let mut tables = self.tables.write();
        let compacted = tables.compacted;
        let rows = tables.by_name.entry(table.into()).or_insert_with(|| Table::new(compacted, &self.held));
        Arc::clone(&rows.log)
    }

    fn compact(&self) {
        let mut tables = self.tables.write();
        let tables = &mut *tables;
        tables.compacted = tables.version;
        for rows in tables.by_name.values_mut() {
            rows.drop_while(|_, _| true);
            rows.log.raise_oldest(tables.version);
        }
    }
}
