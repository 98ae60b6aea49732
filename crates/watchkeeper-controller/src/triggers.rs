//! Keys from outside.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use watchkeeper_informer::ObjectKey;
use watchkeeper_workqueue::{AddOptions, Cause, Priority, WorkQueue};

/// Has keys looked at for reasons no watch knows of: a webhook was called, another system changed, an operator asked.
///
/// Clones are the same. What is sent before the controller is [prepared](crate::runnable::Runnable::prepare) waits for it;
/// a key that is sent many times is looked at once. Sent to several controllers, each of them looks.
///
/// ```
/// use watchkeeper_controller::{Cause, Triggers};
///
/// let triggers = Triggers::new(); // then: controller.channel(&triggers)
/// triggers.send("shop/web".parse()?, Cause::Other("webhook".into()));
/// # Ok::<(), watchkeeper_informer::KeyError>(())
/// ```
#[derive(Clone, Default)]
pub struct Triggers {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By the number of their connection. Whoever sends takes all of them along, and others may come meanwhile.
    queues: Arc<Vec<(u64, WorkQueue<ObjectKey>)>>,
    connections: u64,
    /// What was sent while there was nobody to look.
    waiting: BTreeMap<ObjectKey, (Priority, Cause)>,
}

impl Triggers {
    /// Triggers that no controller listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has a key looked at, and says why.
    pub fn send(&self, key: ObjectKey, cause: Cause) {
        self.send_with(key, cause, Priority::NORMAL);
    }

    /// As [`send`](Self::send), with a priority.
    pub fn send_with(&self, key: ObjectKey, cause: Cause, priority: Priority) {
        let queues = {
            let mut state = self.shared.lock();
            if state.queues.is_empty() {
                let (kept, _) = state.waiting.entry(key).or_insert((priority, cause));
                *kept = priority.max(*kept);
                return;
            }
            Arc::clone(&state.queues)
        };
        let Some(((_, last), others)) = queues.split_last() else { return };
        for (_, queue) in others {
            add(queue, key.clone(), priority, cause.clone());
        }
        add(last, key, priority, cause);
    }

    /// Sends to this queue for as long as the connection is held.
    pub(crate) fn connect(&self, queue: &WorkQueue<ObjectKey>) -> Connected {
        let (id, waiting) = {
            let mut state = self.shared.lock();
            state.connections += 1;
            let id = state.connections;
            Arc::make_mut(&mut state.queues).push((id, queue.clone()));
            (id, std::mem::take(&mut state.waiting))
        };
        for (key, (priority, cause)) in waiting {
            add(queue, key, priority, cause);
        }
        Connected { triggers: self.clone(), id }
    }
}

/// Keeps triggers going to a queue.
pub(crate) struct Connected {
    triggers: Triggers,
    id: u64,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut state = self.triggers.shared.lock();
        let others = state.queues.iter().filter(|(id, _)| *id != self.id).cloned().collect();
        let queues = std::mem::replace(&mut state.queues, Arc::new(others));
        drop(state);
        // Keys go where nothing is locked.
        drop(queues);
    }
}

fn add(queue: &WorkQueue<ObjectKey>, key: ObjectKey, priority: Priority, cause: Cause) {
    // Refused only by a queue that is shut down, and the controller's never is.
    queue.add_with(key, AddOptions::new().priority(priority).cause(cause));
}

impl fmt::Debug for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Triggers")
            .field("controllers", &state.queues.len())
            .field("waiting", &state.waiting.len())
            .finish()
    }
}
