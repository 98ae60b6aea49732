//! The inputs and outputs of the state machine.

use crate::{Admission, Cause, Causes, Priority};

/// Everything about an add except its key and its time.
#[derive(Debug)]
pub(crate) struct Add {
    pub(crate) pending: Pending,
    pub(crate) priority: Priority,
    pub(crate) cause: Option<Cause>,
}

/// The time of the next run of a key.
///
/// A key has at most one pending run. Two of them merge into the lesser: the upper variant wins, and of two times of one
/// variant the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// Now, regardless of a backoff.
    Immediate,
    /// After a failure, not before this time. An ordinary add neither shortens nor extends the wait.
    Backoff(u64),
    /// Now. Replaces a scheduled run, because the work done now covers it.
    Now,
    /// At this time.
    Scheduled(u64),
}

impl Pending {
    pub(super) fn at_nanos(self) -> Option<u64> {
        match self {
            Self::Immediate | Self::Now => None,
            Self::Backoff(at_nanos) | Self::Scheduled(at_nanos) => Some(at_nanos),
        }
    }

    pub(super) fn is_failure(self) -> bool {
        matches!(self, Self::Backoff(_))
    }

    /// Returns the result of an add of a key that waits for this run.
    pub(super) fn admission(self) -> Admission {
        if self.is_failure() { Admission::BackingOff } else { Admission::Scheduled }
    }
}

/// How a run of a key ended. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Finished. The failure count is kept while the key stays in the queue.
    Done,
    /// Succeeded: the failure count is reset.
    Forget,
    /// Failed: the key is processed again after this time, with the causes of this run.
    RetryAt(u64),
    /// Succeeded, and the key is processed again at this time.
    RequeueAt(u64),
    /// Not processed: the key is processed at this time, as if it had not been dequeued.
    PutBackUntil(u64),
}

/// Identifies a run of a key until it is finished: the index in the work in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(pub(super) u32);

/// A dequeued key.
#[derive(Debug)]
pub(crate) struct Dequeued<K> {
    pub(crate) key: K,
    pub(crate) causes: Causes,
    pub(crate) token: Token,
    pub(crate) failures: u32,
    pub(crate) priority: Priority,
}

/// The result of finishing a run.
#[derive(Debug)]
pub(crate) struct Finished<K> {
    /// The state of the key. `None` if the key left the queue.
    pub(crate) admission: Option<Admission>,
    /// The queue's copy of a key that left, to be dropped after the queue is unlocked.
    pub(crate) removed: Option<K>,
    /// True if a failure count above zero was discarded.
    pub(crate) has_forgotten: bool,
}
