//! The options and the result of an add.

use std::time::Duration;

use crate::{Cause, Priority};

/// The options of [`WorkQueue::add_with`](crate::WorkQueue::add_with): priority, cause and time.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::{AddOptions, Cause, Priority, WorkQueue};
///
/// let queue = WorkQueue::new("pods");
/// queue.add_with("default/web", AddOptions::new().priority(Priority::LOW).cause(Cause::Resync));
/// queue.add_with("default/db", AddOptions::new().after(Duration::from_secs(30)));
/// assert_eq!((queue.len(), queue.waiting_len()), (1, 1));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
#[doc(alias = "AddOpts")]
pub struct AddOptions {
    pub(crate) priority: Priority,
    pub(crate) cause: Option<Cause>,
    pub(crate) when: When,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum When {
    #[default]
    Now,
    Immediately,
    After(Duration),
    RateLimited,
}

impl AddOptions {
    /// Creates options for an add that is ready now, with normal priority and no cause.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the priority. Of several adds of one key the highest priority counts. A queued key whose priority is raised is queued
    /// behind the keys of that priority.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the cause.
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Delays the key, as [`WorkQueue::add_after`](crate::WorkQueue::add_after) does.
    pub fn after(mut self, delay: Duration) -> Self {
        self.when = When::After(delay);
        self
    }

    /// Delays the key by its backoff, as [`WorkQueue::add_rate_limited`](crate::WorkQueue::add_rate_limited) does.
    pub fn rate_limited(mut self) -> Self {
        self.when = When::RateLimited;
        self
    }

    /// Makes the key ready now, even if it backs off after a failure. The failure count is kept.
    ///
    /// By default an add does not end a backoff, so that a busy object cannot overload a failing dependency. Use this option
    /// when the add itself suggests that the next run succeeds: the desired state was edited.
    pub fn immediately(mut self) -> Self {
        self.when = When::Immediately;
        self
    }
}

/// The result of an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// The key is queued now.
    Queued,
    /// The key was queued before. This add is part of the same run.
    Merged,
    /// The key waits for its delay.
    Scheduled,
    /// The key waits for its backoff.
    BackingOff,
    /// The key is being processed. It is queued once more when that run ends.
    Deferred,
    /// The add was rejected: the queue is shut down.
    Refused,
}
