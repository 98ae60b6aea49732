//! What a reconciler says when it is done.

use std::time::Duration;

use watchkeeper_workqueue::Priority;

/// What is to become of a key after a reconcile that worked.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_controller::{Action, Priority};
///
/// let settled = Action::done();
/// let look_again = Action::requeue_after(Duration::from_mins(5)).with_priority(Priority::LOW);
/// assert_ne!(settled, look_again);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use = "an action does nothing unless the reconciler returns it"]
pub struct Action {
    requeue: Option<Requeue>,
}

/// When a key is to come back, and how urgent it is then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requeue {
    pub(crate) after: Duration,
    /// As urgent as it was, unless said otherwise.
    pub(crate) priority: Option<Priority>,
}

impl Action {
    /// Nothing more to do until something changes.
    pub fn done() -> Self {
        Self { requeue: None }
    }

    /// The key comes back after this time, or earlier if something changes.
    pub fn requeue_after(after: Duration) -> Self {
        Self { requeue: Some(Requeue { after, priority: None }) }
    }

    /// Says how urgent the key is when it comes back. Of [`Action::done`], which does not come back, it changes nothing.
    pub fn with_priority(mut self, priority: Priority) -> Self {
        if let Some(requeue) = &mut self.requeue {
            requeue.priority = Some(priority);
        }
        self
    }

    pub(crate) fn requeue(self) -> Option<Requeue> {
        self.requeue
    }
}
