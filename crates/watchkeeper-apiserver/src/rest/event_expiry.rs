//! Events are forgotten an hour after they were last written.
//!
//! Lazily: they go when somebody next asks about events, which is also when anybody could notice.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use super::{Rest, table_of};
use crate::{kinds::Kind, storage::Object};

/// As an API server keeps them unless it is told otherwise.
const LIFETIME: Duration = Duration::from_hours(1);

/// The table of events, of either group.
const TABLE: &str = "events";

/// Events in the order they are to be forgotten.
#[derive(Debug, Default)]
pub(crate) struct EventExpiry(Mutex<VecDeque<Due>>);

#[derive(Debug)]
struct Due {
    at: SystemTime,
    key: String,
    /// An event that was written again lives on.
    version: u64,
}

impl EventExpiry {
    fn pop(&self, now: SystemTime) -> Option<Due> {
        let mut events = self.0.lock();
        events.front().is_some_and(|first| first.at <= now).then(|| events.pop_front())?
    }
}

impl Rest {
    /// Notes an event that was written.
    pub(super) fn note_event(&self, kind: &Kind, object: &Object) {
        if table_of(kind) == TABLE {
            let (at, key) = (self.now() + LIFETIME, object.content.key());
            self.events.0.lock().push_back(Due { at, key, version: object.version });
        }
    }

    /// Forgets the events whose time has come, if `kind` is theirs.
    pub(crate) fn expire_events(&self, kind: &Kind) {
        if kind.plural != TABLE || table_of(kind) != TABLE {
            return;
        }
        let now = self.now();
        while let Some(Due { key, version, .. }) = self.events.pop(now) {
            // One that was written or deleted since has another version, or none.
            _ = self.store.delete(TABLE, &key, version, now);
        }
    }
}
