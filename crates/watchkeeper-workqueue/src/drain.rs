//! How a drain ended.

/// What [`WorkQueue::drain`](crate::WorkQueue::drain) came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a drain that reached its deadline left work behind"]
pub enum Drained {
    /// Nothing is queued, dirty or being processed any more.
    Complete,
    /// Time was up first.
    DeadlineReached {
        /// Keys still in line.
        queued: usize,
        /// Keys still being processed.
        processing: usize,
    },
}
