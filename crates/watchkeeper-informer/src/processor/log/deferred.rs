//! Effects of a step that are deferred until the lock is released.

use std::sync::Arc;

use tracing::{debug, warn};

use super::{
    EventBatch, Initial, UnstartedListener,
    listener_state::{Feed, ListenerState},
};
use crate::{event::Event, wakers::Wakers};

/// The effects of a step that must not run under the lock because they may run foreign code: wake-ups, log
/// lines, and drops.
pub(in super::super) struct Deferred<K> {
    pub(super) to_wake: Wakers,
    pub(super) changes: Vec<ModeChange>,
    /// Events that were merged into others, or that have no recipient.
    pub(super) events: Vec<Event<K>>,
    // The remaining fields are only dropped.
    pub(super) batches: Vec<Arc<EventBatch<K>>>,
    pub(super) feeds: Vec<Feed<K>>,
    pub(super) initials: Vec<Initial<K>>,
    pub(super) listeners: Vec<ListenerState<K>>,
    pub(super) unstarted: Vec<UnstartedListener<K>>,
}

/// A change that is logged.
pub(super) enum ModeChange {
    /// A listener was switched to a coalesced backlog.
    Lags { name: Arc<str>, events: u64 },
    /// A listener returned to the log.
    CaughtUp { name: Arc<str> },
}

impl<K> Deferred<K> {
    pub(in super::super) fn new() -> Self {
        Self {
            to_wake: Wakers::default(),
            changes: Vec::new(),
            events: Vec::new(),
            batches: Vec::new(),
            feeds: Vec::new(),
            initials: Vec::new(),
            listeners: Vec::new(),
            unstarted: Vec::new(),
        }
    }

    /// Runs the effects. No lock may be held.
    pub(in super::super) fn run(self) {
        self.to_wake.wake();
        for change in &self.changes {
            match change {
                ModeChange::Lags { name, events } => {
                    warn!(handler = %name, lag = events, "handler lags; coalescing its events by key");
                }
                ModeChange::CaughtUp { name } => {
                    debug!(handler = %name, "handler caught up; delivering every event again");
                }
            }
        }
    }
}
