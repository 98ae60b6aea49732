//! The result of a drain.

/// How [`WorkQueue::drain`](crate::WorkQueue::drain) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a drain that reached its deadline left keys unprocessed"]
pub enum Drained {
    /// No key is queued or being processed.
    Complete,
    /// The deadline passed first.
    DeadlineReached {
        /// Keys still queued.
        queued: usize,
        /// Keys still being processed.
        processing: usize,
    },
}
