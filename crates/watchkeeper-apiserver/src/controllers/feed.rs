//! What happens to the server's objects, read from the histories of its tables.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use super::{driver::Feed, object::Meta, objects::Change as Heard, server::stored_kinds};
use crate::{
    http::Api,
    kinds::GroupVersionKind,
    storage::{Change, Event, Log, Position, Query},
};

/// The changes of every table, as one story.
///
/// Nothing is heard before everything that was written earlier, in whatever table: that an owner lets its dependents go
/// must not be heard before its dependents are. A table whose history was dropped faster than it was read is listed anew.
#[derive(Debug)]
pub(super) struct StoreFeed {
    api: Arc<Api>,
    tables: BTreeMap<String, Reader>,
    generation: u64,
    newest: watch::Receiver<u64>,
    kinds: watch::Receiver<u64>,
    trusted: watch::Receiver<Arc<str>>,
    /// The authorities that have been heard of.
    heard_trusted: Arc<str>,
    /// Everything up to this version has been heard.
    heard: u64,
}

/// The reader of one table.
#[derive(Debug)]
struct Reader {
    kind: Arc<GroupVersionKind>,
    log: Arc<Log>,
    /// Everything before it has been read; none when the table has to be listed.
    position: Option<Position>,
    /// What has been read and not been heard.
    events: VecDeque<Arc<Event>>,
    /// The kind is served no longer; what happened to its last objects is still to be heard.
    is_leaving: bool,
}

impl StoreFeed {
    /// A feed that begins with what is stored.
    pub(super) fn new(api: Arc<Api>, trusted: watch::Receiver<Arc<str>>) -> Self {
        let (newest, kinds) = (api.rest.store.subscribe(), api.rest.registry.subscribe());
        Self {
            api,
            tables: BTreeMap::new(),
            generation: 0,
            newest,
            kinds,
            trusted,
            heard_trusted: Arc::from(""),
            heard: 0,
        }
    }

    /// Sees which tables there are; true if they are others than before.
    fn see_kinds(&mut self) -> bool {
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

    /// Lists the tables that have to be; answers the newest version that was listed.
    fn list(&mut self, changes: &mut Vec<Heard>) -> u64 {
        let rest = &self.api.rest;
        let mut newest = 0;
        for (table, reader) in self.tables.iter_mut().filter(|(_, reader)| reader.position.is_none()) {
            let everything = Query { prefix: "", start: "", at: None, limit: None, filter: None };
            let Ok(page) = rest.store.list(table, everything, rest.clock.now()) else { continue };
            newest = newest.max(page.version);
            reader.events.clear();
            reader.position = reader.log.position_after(page.version).ok();
            let objects = page.objects.iter().map(|object| Meta::of_stored(&reader.kind, object)).collect();
            changes.push(Heard::Relisted(Arc::clone(&reader.kind), objects));
        }
        newest
    }

    /// Reads on in every table; false if one has to be listed first.
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

    /// Hands on what was read up to `version`, in the order it was written.
    fn hand_on(&mut self, version: u64, changes: &mut Vec<Heard>) {
        let mut heard = Vec::new();
        for reader in self.tables.values_mut() {
            while let Some(event) = reader.events.pop_front_if(|event| event.version <= version) {
                let meta = Meta::of_stored(&reader.kind, &event.object);
                let change = match event.change {
                    Change::Added | Change::Modified => Heard::Seen(meta),
                    Change::Deleted => Heard::Gone(meta),
                };
                heard.push((event.version, change));
            }
        }
        heard.sort_by_key(|(version, _)| *version);
        changes.extend(heard.into_iter().map(|(_, change)| change));
        self.heard = version;
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

    fn take(&mut self, changes: &mut Vec<Heard>) {
        let trusted = Arc::clone(&self.trusted.borrow());
        if trusted != self.heard_trusted {
            self.heard_trusted = Arc::clone(&trusted);
            changes.push(Heard::Trusted(trusted));
        }
        let has_new_kinds = self.see_kinds();
        let mut version = self.api.rest.store.version();
        if version == self.heard && !has_new_kinds {
            return;
        }
        version = version.max(self.list(changes));
        while !self.read() {
            version = version.max(self.list(changes));
        }
        self.hand_on(version, changes);
        self.tables.retain(|_, reader| !reader.is_leaving || !reader.events.is_empty());
        if has_new_kinds {
            changes.push(Heard::Kinds);
        }
    }
}
