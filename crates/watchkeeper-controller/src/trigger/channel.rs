//! Keys enqueued from outside a controller.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use watchkeeper_informer::ObjectKey;
use watchkeeper_workqueue::{AddOptions, Cause, Priority, WorkQueue};

/// A channel that enqueues keys for reasons that no watch covers, such as a webhook call, a change in another
/// system, or a request of an operator.
///
/// Clones share the same channel. Keys that are sent before the controller is
/// [prepared](crate::manager::Runnable::prepare) wait for it. A key that is sent repeatedly before it is
/// processed is reconciled once. Every controller that uses the channel receives every key.
///
/// ```
/// use watchkeeper_controller::{Cause, Triggers};
///
/// let triggers = Triggers::new(); // then: controller.channel(&triggers)
/// triggers.send("shop/web".parse()?, Cause::Other("webhook".into()));
/// # Ok::<(), watchkeeper_informer::KeyError>(())
/// ```
#[doc(alias = "Channel")]
#[doc(alias = "GenericEvent")]
#[derive(Clone, Default)]
#[doc(alias = "TypedChannel")]
pub struct Triggers {
    state: Arc<Mutex<ChannelState>>,
}

#[derive(Default)]
struct ChannelState {
    /// The subscribed queues by subscription number. Senders clone the list, so that queues can subscribe
    /// meanwhile.
    queues: Arc<Vec<(u64, WorkQueue<ObjectKey>)>>,
    last_id: u64,
    /// The keys that were sent while no queue was subscribed.
    waiting: BTreeMap<ObjectKey, (Priority, Cause)>,
}

impl Triggers {
    /// Creates a channel without a connected controller.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enqueues a key with its cause in every controller that uses the channel.
    pub fn send(&self, key: ObjectKey, cause: Cause) {
        self.send_with(key, cause, Priority::NORMAL);
    }

    /// Enqueues a key as [`send`](Self::send) does, with a priority.
    pub fn send_with(&self, key: ObjectKey, cause: Cause, priority: Priority) {
        let queues = {
            let mut state = self.state.lock();
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

    /// Subscribes a queue for as long as the returned subscription is held.
    pub(crate) fn subscribe(&self, queue: &WorkQueue<ObjectKey>) -> Subscription {
        let (id, waiting) = {
            let mut state = self.state.lock();
            state.last_id += 1;
            let id = state.last_id;
            Arc::make_mut(&mut state.queues).push((id, queue.clone()));
            (id, std::mem::take(&mut state.waiting))
        };
        for (key, (priority, cause)) in waiting {
            add(queue, key, priority, cause);
        }
        Subscription { triggers: self.clone(), id }
    }
}

/// The subscription of a queue. Dropping the value unsubscribes the queue.
pub(crate) struct Subscription {
    triggers: Triggers,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.triggers.state.lock();
        let others = state.queues.iter().filter(|(id, _)| *id != self.id).cloned().collect();
        let queues = std::mem::replace(&mut state.queues, Arc::new(others));
        drop(state);
        // Keys are dropped outside the lock.
        drop(queues);
    }
}

fn add(queue: &WorkQueue<ObjectKey>, key: ObjectKey, priority: Priority, cause: Cause) {
    // Only a queue that is shut down rejects keys, and the controller's never is.
    queue.add_with(key, AddOptions::new().priority(priority).cause(cause));
}

impl fmt::Debug for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Triggers")
            .field("controllers", &state.queues.len())
            .field("waiting", &state.waiting.len())
            .finish()
    }
}
