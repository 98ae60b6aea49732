//! When keys were queued and handed out, for queues whose metrics ask.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::slots::SlotId;

/// Kept only when metrics are attached: eight bytes a slot, and an entry for each key being processed.
#[derive(Debug, Default)]
pub(super) struct Times {
    queued: Vec<u64>,
    started: HashMap<SlotId, u64, RandomState>,
}

/// How long the keys being processed have been so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunningNanos {
    pub(crate) total: u64,
    pub(crate) longest: u64,
}

impl Times {
    pub(super) fn queue(&mut self, id: SlotId, now: u64) {
        let index = id as usize;
        if self.queued.len() <= index {
            self.queued.resize(index + 1, 0);
        }
        self.queued[index] = now;
    }

    /// Notes the start of work; how long the key was in line.
    pub(super) fn start(&mut self, id: SlotId, now: u64) -> u64 {
        self.started.insert(id, now);
        self.queued.get(id as usize).map_or(0, |&since| now.saturating_sub(since))
    }

    /// Notes the end of work; how long it took.
    pub(super) fn finish(&mut self, id: SlotId, now: u64) -> u64 {
        self.started.remove(&id).map_or(0, |since| now.saturating_sub(since))
    }

    pub(super) fn running(&self, now: u64) -> RunningNanos {
        self.started.values().map(|&since| now.saturating_sub(since)).fold(
            RunningNanos::default(),
            |sum, nanos| RunningNanos {
                total: sum.total.saturating_add(nanos),
                longest: sum.longest.max(nanos),
            },
        )
    }

    pub(super) fn reset(&mut self) {
        self.queued = Vec::new();
    }
}
