//! What is left to do when the lock is released.

use std::sync::Arc;

use tracing::{debug, warn};

use super::{
    Batch, Initial, Unstarted,
    member::{Feed, Member},
};
use crate::{event::Event, wakers::Wakers};

/// Whom to wake, what to log and what to drop after a step: each of these may run code that is not ours, and
/// none of it may run under the lock.
pub(in super::super) struct Aftermath<K> {
    pub(super) to_wake: Wakers,
    pub(super) changes: Vec<ModeChange>,
    /// Events that were merged into others, or that nobody is to hear.
    pub(super) events: Vec<Event<K>>,
    // What follows is only to be dropped.
    pub(super) batches: Vec<Arc<Batch<K>>>,
    pub(super) feeds: Vec<Feed<K>>,
    pub(super) initials: Vec<Initial<K>>,
    pub(super) members: Vec<Member<K>>,
    pub(super) unstarted: Vec<Unstarted<K>>,
}

/// What is worth a line in the log of the program.
pub(super) enum ModeChange {
    /// A listener was taken off the log.
    Lags { name: Arc<str>, events: u64 },
    /// A listener is back on the log.
    CaughtUp { name: Arc<str> },
}

impl<K> Aftermath<K> {
    pub(in super::super) fn new() -> Self {
        Self {
            to_wake: Wakers::default(),
            changes: Vec::new(),
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
        for change in &self.changes {
            match change {
                ModeChange::Lags { name, events } => {
                    warn!(handler = %name, lag = events, "handler lags: it now hears the newest state of each key only");
                }
                ModeChange::CaughtUp { name } => {
                    debug!(handler = %name, "handler has caught up, and hears every event again");
                }
            }
        }
    }
}
