//! When keys were queued and handed out, for queues whose metrics ask.

use std::{collections::HashMap, mem};

use foldhash::fast::RandomState;

use super::slots::SlotId;

/// Kept only when metrics are attached: eight bytes a slot, and an entry for each key being processed.
#[derive(Debug, Default)]
pub(super) struct Times {
    queued: Vec<u64>,
    started: HashMap<SlotId, u64, RandomState>,
    last: Durations,
}

/// What the last step brought to an end, for the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Durations {
    pub(crate) queued_nanos: Option<u64>,
    pub(crate) work_nanos: Option<u64>,
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

    /// Notes that a key was handed out.
    pub(super) fn start(&mut self, id: SlotId, now: u64) {
        self.started.insert(id, now);
        self.last.queued_nanos = self.queued.get(id as usize).map(|&since| now.saturating_sub(since));
    }

    /// Notes that the work on a key ended.
    pub(super) fn finish(&mut self, id: SlotId, now: u64) {
        self.last.work_nanos = self.started.remove(&id).map(|since| now.saturating_sub(since));
    }

    pub(super) fn take_last(&mut self) -> Durations {
        mem::take(&mut self.last)
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
