//! The objects of one resource, each with the versions that are still within the history window.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use super::{
    log::{Event, HeldBytes, Log},
    object::Object,
};

/// The objects of a table by key, in the order of lists.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) log: Arc<Log>,
    rows: BTreeMap<Box<str>, Row>,
    /// The number of rows whose object currently exists.
    live: usize,
}

/// The versions of an object. An object without changes inside the window is a single pointer.
#[derive(Debug)]
enum Row {
    One(Arc<Object>),
    Many(VecDeque<Version>),
}

#[derive(Debug)]
struct Version {
    version: u64,
    /// The object; none if this version is a deletion.
    object: Option<Arc<Object>>,
}

impl Row {
    fn newest(&self) -> Option<&Arc<Object>> {
        match self {
            Self::One(object) => Some(object),
            Self::Many(versions) => versions.back()?.object.as_ref(),
        }
    }

    fn at(&self, version: u64) -> Option<&Arc<Object>> {
        match self {
            Self::One(object) => (object.version <= version).then_some(object),
            Self::Many(versions) => {
                let after = versions.partition_point(|row| row.version <= version);
                versions.get(after.checked_sub(1)?)?.object.as_ref()
            }
        }
    }
}

impl Table {
    pub(super) fn new(oldest: u64, held: &HeldBytes) -> Self {
        Self { log: Arc::new(Log::new(oldest, held.clone())), rows: BTreeMap::new(), live: 0 }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Object>> {
        self.rows.get(key)?.newest()
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Stores `object` at `version`. Without an object, records a deletion.
    pub(super) fn put(&mut self, key: &str, version: u64, object: Option<Arc<Object>>) {
        let existed = self.get(key).is_some();
        match (existed, object.is_some()) {
            (false, true) => self.live += 1,
            (true, false) => self.live -= 1,
            _ => {}
        }
        match self.rows.get_mut(key) {
            None => {
                if let Some(object) = object {
                    self.rows.insert(key.into(), Row::One(object));
                }
            }
            Some(row) => {
                if let Row::One(first) = row {
                    let first = Version { version: first.version, object: Some(Arc::clone(first)) };
                    *row = Row::Many(VecDeque::from([first]));
                }
                if let Row::Many(versions) = row {
                    versions.push_back(Version { version, object });
                }
            }
        }
    }

    /// Drops the oldest events of the log while `is_over` returns true, along with the versions that only these events could
    /// show.
    pub(super) fn drop_while(&mut self, is_over: impl FnMut(&Event, usize) -> bool) {
        for event in self.log.drop_while(is_over) {
            self.forget_before(&event.object.content.key(), event.version);
        }
    }

    /// Drops the versions of `key` before `version`, which can no longer be read.
    pub(super) fn forget_before(&mut self, key: &str, version: u64) {
        let Some(row) = self.rows.get_mut(key) else { return };
        if let Row::Many(versions) = row {
            while versions.get(1).is_some_and(|second| second.version <= version) {
                versions.pop_front();
            }
            // A deletion without readable versions before it is equivalent to no row.
            if versions.front().is_some_and(|first| first.object.is_none() && first.version <= version) {
                versions.pop_front();
            }
            if versions.is_empty() {
                self.rows.remove(key);
            } else if let [Version { object: Some(_), .. }] = versions.make_contiguous()
                && let Some(Version { object: Some(object), .. }) = versions.pop_front()
            {
                *row = Row::One(object);
            }
        }
    }

    /// Returns the objects under keys with `prefix`, from `start` on, at `version` or the newest, in order.
    pub(super) fn range<'a>(
        &'a self,
        prefix: &'a str,
        start: &'a str,
        version: Option<u64>,
    ) -> impl Iterator<Item = (&'a str, &'a Arc<Object>)> {
        let start = start.max(prefix);
        self.rows
            .range::<str, _>((Bound::Included(start), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .filter_map(move |(key, row)| {
                let object = match version {
                    Some(version) => row.at(version),
                    None => row.newest(),
                }?;
                Some((&**key, object))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::content, *};

    #[test]
    fn the_row_of_a_deleted_object_is_freed_when_the_object_can_no_longer_be_listed() {
        let mut table = Table::new(1, &HeldBytes::default());
        let object = Arc::new(Object { version: 2, content: content("ns", "x", 0) });
        table.put("ns/x", 2, Some(object));
        table.put("ns/x", 3, None);
        table.forget_before("ns/x", 2);
        assert_eq!(table.range("", "", Some(2)).count(), 1, "version 2 can still be listed");
        table.forget_before("ns/x", 3);
        assert!(table.rows.is_empty(), "{:?}", table.rows);
    }
}
