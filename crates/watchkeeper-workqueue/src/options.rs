//! What an add may say, and what it is told.

use std::time::Duration;

use crate::{Cause, Priority};

/// How a key is to be added: [`WorkQueue::add_with`](crate::WorkQueue::add_with).
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
    /// Now, at normal priority, with no cause.
    pub fn new() -> Self {
        Self::default()
    }

    /// How urgent it is. Of several adds of one key the highest counts.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Why it is added.
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Not now but after a while, as [`WorkQueue::add_after`](crate::WorkQueue::add_after).
    pub fn after(mut self, delay: Duration) -> Self {
        self.when = When::After(delay);
        self
    }

    /// After the delay the rate limiter gives, as [`WorkQueue::add_rate_limited`](crate::WorkQueue::add_rate_limited).
    pub fn rate_limited(mut self) -> Self {
        self.when = When::RateLimited;
        self
    }

    /// Now, even if the key backs off after a failure.
    ///
    /// An ordinary add waits with a key that backs off, so that a busy object cannot hammer what is failing.
    /// Use this when the add itself is a reason to believe that the next try will do better: the desired state
    /// was edited. The failures stay counted.
    pub fn immediately(mut self) -> Self {
        self.when = When::Immediately;
        self
    }
}

/// What became of an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// In line now.
    Queued,
    /// Was in line already; this add is part of the same hand-out.
    Merged,
    /// Waits for its time.
    Scheduled,
    /// Waits because its last work failed.
    BackingOff,
    /// Is being processed; handed out again, once, when that ends.
    Deferred,
    /// Taken, and which of the above it comes to is decided when the queue is next looked at: it was busy, or so many
    /// keys are in line that more of them are taken in together. Only adds of normal priority are answered so.
    Posted,
    /// Not taken: the queue is shut down.
    Refused,
}
