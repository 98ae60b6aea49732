//! The feed of changes to the server's objects, read from the logs of the tables.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use super::{driver::Feed, object::Meta, objects::ServerEvent, server::stored_kinds};
use crate::{
    http::Api,
    kinds::GroupVersionKind,
    storage::{Event, EventType, Log, Position, Query},
};

/// The changes of all tables, merged into one sequence.
///
/// A change is delivered only after all changes that were written earlier in any table. For example, the removal of an
/// owner's orphan finalizer must not be delivered before its dependents are. A table whose history is trimmed faster than it
/// is read is relisted.
#[derive(Debug)]
pub(super) struct StoreFeed {
    api: Arc<Api>,
    tables: BTreeMap<String, Reader>,
    generation: u64,
    newest: watch::Receiver<u64>,
    kinds: watch::Receiver<u64>,
    trusted: watch::Receiver<Arc<str>>,
    /// The certificate authorities that have been delivered.
    delivered_trusted: Arc<str>,
    /// The version up to which all changes have been delivered.
    delivered: u64,
}

/// The reader of one table.
#[derive(Debug)]
struct Reader {
    kind: Arc<GroupVersionKind>,
    log: Arc<Log>,
    /// The position up to which the log has been read; none if the table must be listed.
    position: Option<Position>,
    /// The events that have been read and not yet delivered.
    events: VecDeque<Arc<Event>>,
    /// Whether the kind is no longer served. The reader remains until the last events of its objects are delivered.
    is_leaving: bool,
}

impl StoreFeed {
    /// Creates a feed that starts with the stored objects.
    pub(super) fn new(api: Arc<Api>, trusted: watch::Receiver<Arc<str>>) -> Self {
        let (newest, kinds) = (api.rest.store.subscribe(), api.rest.registry.subscribe());
        Self {
            api,
            tables: BTreeMap::new(),
            generation: 0,
            newest,
            kinds,
            trusted,
            delivered_trusted: Arc::from(""),
            delivered: 0,
        }
    }

    /// Updates the set of tables. Returns true if the served kinds have changed.
    fn update_kinds(&mut self) -> bool {
        let kinds = self.api.rest.registry.kinds();
        if kinds.generation() == self.generation {
            return false;
        }
        self.generation = kinds.generation();
        let stored = stored_kinds(&kinds);
        for (table, reader) in &mut self.tables {
            reader.is_leaving = !stored.contains_key(table);
        }
        for (table, kind) in stored {
            self.tables.entry(table).or_insert_with_key(|table| Reader {
                kind: Arc::new(kind.gvk.clone()),
                log: self.api.rest.store.log(table),
                position: None,
                events: VecDeque::new(),
                is_leaving: false,
            });
        }
        true
    }

    /// Lists the tables that have no position. Returns the newest listed version.
    fn list(&mut self, changes: &mut Vec<ServerEvent>) -> u64 {
        let rest = &self.api.rest;
        let mut newest = 0;
        for (table, reader) in self.tables.iter_mut().filter(|(_, reader)| reader.position.is_none()) {
            let everything = Query { prefix: "", start: "", at: None, limit: None, filter: None };
            let Ok(page) = rest.store.list(table, everything, rest.clock.wall_time()) else { continue };
            newest = newest.max(page.version);
            reader.events.clear();
            reader.position = reader.log.position_after(page.version).ok();
            let objects = page.objects.iter().map(|object| Meta::of_stored(&reader.kind, object)).collect();
            changes.push(ServerEvent::Relisted(Arc::clone(&reader.kind), objects));
        }
        newest
    }

    /// Reads new events of every table. Returns false if a table must be listed first.
    fn read(&mut self) -> bool {
        let mut is_complete = true;
        for reader in self.tables.values_mut() {
            let read = reader
                .position
                .as_mut()
                .map(|position| reader.log.read(position, usize::MAX, &mut reader.events));
            if !matches!(read, Some(Ok(()))) {
                reader.position = None;
                is_complete = false;
            }
        }
        is_complete
    }

    /// Delivers the events up to `version`, in the order of their versions.
    fn deliver(&mut self, version: u64, changes: &mut Vec<ServerEvent>) {
        let mut events = Vec::new();
        for reader in self.tables.values_mut() {
            while let Some(event) = reader.events.pop_front_if(|event| event.version <= version) {
                let meta = Meta::of_stored(&reader.kind, &event.object);
                let change = match event.change {
                    EventType::Added | EventType::Modified => ServerEvent::Observed(meta),
                    EventType::Deleted => ServerEvent::Deleted(meta),
                };
                events.push((event.version, change));
            }
        }
        events.sort_by_key(|(version, _)| *version);
        changes.extend(events.into_iter().map(|(_, change)| change));
        self.delivered = version;
    }
}

impl Feed for StoreFeed {
    async fn wait(&mut self) -> bool {
        tokio::select! {
            biased;
            changed = self.newest.changed() => changed.is_ok(),
            changed = self.kinds.changed() => changed.is_ok(),
            changed = self.trusted.changed() => changed.is_ok(),
        }
    }

    fn drain_into(&mut self, changes: &mut Vec<ServerEvent>) {
        let trusted = Arc::clone(&self.trusted.borrow());
        if trusted != self.delivered_trusted {
            self.delivered_trusted = Arc::clone(&trusted);
            changes.push(ServerEvent::CertificateAuthority(trusted));
        }
        let has_new_kinds = self.update_kinds();
        let mut version = self.api.rest.store.version();
        if version == self.delivered && !has_new_kinds {
            return;
        }
        version = version.max(self.list(changes));
        while !self.read() {
            version = version.max(self.list(changes));
        }
        self.deliver(version, changes);
        self.tables.retain(|_, reader| !reader.is_leaving || !reader.events.is_empty());
        if has_new_kinds {
            changes.push(ServerEvent::Kinds);
        }
    }
}
