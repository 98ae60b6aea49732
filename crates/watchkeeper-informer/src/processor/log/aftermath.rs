//! What is left to do when the lock is released.

use std::sync::Arc;

use tracing::{debug, warn};

use super::{
    Batch, Initial, Unstarted,
    member::{Feed, Member},
};
use crate::{event::Event, wakers::Wakers};

/// Whom to wake, what to log and what to drop after a step: each of these may run code that is not ours, and none of it
/// may run under the lock.
pub(in super::super) struct Aftermath<K> {
    pub(super) to_wake: Wakers,
    /// Listeners that were taken off the log, and how many events they lagged.
    pub(super) coalesced: Vec<(Arc<str>, u64)>,
    /// Listeners that are back on the log.
    pub(super) caught_up: Vec<Arc<str>>,
    pub(super) events: Vec<Event<K>>,
    pub(super) batches: Vec<Arc<Batch<K>>>,
    pub(super) feeds: Vec<Feed<K>>,
    pub(super) initials: Vec<Initial<K>>,
    pub(super) members: Vec<Member<K>>,
    pub(super) unstarted: Vec<Unstarted<K>>,
}

impl<K> Aftermath<K> {
    pub(in super::super) fn new() -> Self {
        Self {
            to_wake: Wakers::default(),
            coalesced: Vec::new(),
            caught_up: Vec::new(),
            events: Vec::new(),
            batches: Vec::new(),
            feeds: Vec::new(),
            initials: Vec::new(),
            members: Vec::new(),
            unstarted: Vec::new(),
        }
    }

    /// Does it. Not to be called with a lock held.
    pub(in super::super) fn settle(self) {
        self.to_wake.wake();
        for (name, lag) in &self.coalesced {
            warn!(handler = %name, lag, "handler lags: from here on it hears the newest state of each key only");
        }
        for name in &self.caught_up {
            debug!(handler = %name, "handler has caught up, and hears every event again");
        }
    }
}
