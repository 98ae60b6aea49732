//! The result of a successful reconcile.

use std::time::Duration;

use watchkeeper_workqueue::Priority;

/// The next step for a key after a successful reconcile.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_controller::{Action, Priority};
///
/// let settled = Action::done();
/// let check_later = Action::requeue_after(Duration::from_mins(5)).with_priority(Priority::LOW);
/// assert_ne!(settled, check_later);
/// ```
#[doc(alias = "Result")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use = "an action does nothing unless the reconciler returns it"]
pub struct Action {
    requeue: Option<Requeue>,
}

/// The delay and priority of a requeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requeue {
    pub(crate) after: Duration,
    /// The priority; `None` keeps the current one.
    pub(crate) priority: Option<Priority>,
}

impl Action {
    /// Returns an action that does not requeue the key. The next change enqueues it.
    pub fn done() -> Self {
        Self { requeue: None }
    }

    /// Returns an action that requeues the key after this time, or earlier if something changes.
    #[doc(alias = "RequeueAfter")]
    #[doc(alias = "debounce")]
    pub fn requeue_after(after: Duration) -> Self {
        Self { requeue: Some(Requeue { after, priority: None }) }
    }

    /// Sets the priority of the requeue. Has no effect on [`Action::done`], which does not requeue.
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
