//! Expiry of events, one hour after their last write.
//!
//! Expiry is lazy: expired events are deleted by the next request for events, before any client can observe them.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use super::{Rest, table_of};
use crate::{kinds::Kind, storage::Object};

/// The lifetime of events; the default of kube-apiserver.
const LIFETIME: Duration = Duration::from_hours(1);

/// The table of events, of either group.
const TABLE: &str = "events";

/// The events in the order of their expiry.
#[derive(Debug, Default)]
pub(crate) struct EventExpiry(Mutex<VecDeque<ExpiringEvent>>);

#[derive(Debug)]
struct ExpiringEvent {
    at: SystemTime,
    key: String,
    /// The version of the event. An event that was written again has another version and does not expire yet.
    version: u64,
}

impl EventExpiry {
    fn pop(&self, now: SystemTime) -> Option<ExpiringEvent> {
        let mut events = self.0.lock();
        events.front().is_some_and(|first| first.at <= now).then(|| events.pop_front())?
    }
}

impl Rest {
    /// Records a write of an event.
    pub(super) fn schedule_event_expiry(&self, kind: &Kind, object: &Object) {
        if table_of(kind) == TABLE {
            let (at, key) = (self.now() + LIFETIME, object.content.key());
            self.events.0.lock().push_back(ExpiringEvent { at, key, version: object.version });
        }
    }

    /// Deletes the expired events, if `kind` is that of events.
    pub(crate) fn expire_events(&self, kind: &Kind) {
        if kind.plural != TABLE || table_of(kind) != TABLE {
            return;
        }
        let now = self.now();
        while let Some(ExpiringEvent { key, version, .. }) = self.events.pop(now) {
            // An event that was written or deleted since has another version, or none.
            _ = self.store.delete(TABLE, &key, version, now);
        }
    }
}
